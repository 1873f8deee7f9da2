"""One call of what is offered, from its arguments to its result.

Where a client's protocol has no way to ask its user while it waits, it is asked by an answer: it asks, and
calls again with what was said and with the run's id. So nothing is kept here between the two, and what comes
back proves nothing by itself: the run must be one of the same agent, with the same prompt.
"""

from __future__ import annotations

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
)
from msgspec.structs import replace

from flyball.adapters.mcp.approving import request as question_for
from flyball.adapters.mcp.arguments import read_arguments, request_for
from flyball.adapters.mcp.client import Client
from flyball.adapters.mcp.offering import AgentOffer, ToolOffer
from flyball.adapters.mcp.results import answer_of, returned, waiting
from flyball.adapters.mcp.running import Desk, Run
from flyball.core.errors import FlyballError, NotPermitted
from flyball.core.events import Started
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, Text
from flyball.orchestrate.contracts import Mode, SystemRequest, SystemResponse
from flyball.orchestrate.permissions import owned
from flyball.orchestrate.service import Service


async def call_agent(
    desk: Desk, offer: AgentOffer, params: CallToolRequestParams, client: Client
) -> CallToolResult | InputRequiredResult:
    """Have an agent run, and give its answer; or what it waits for.

    Cancelling this cancels the run, unless it is the server that ends: then the run is left as recorded.

    Raises:
        MCPError: what was asked is nothing that could be run.
        FlyballError: it was refused before it began.
    """
    asked = read_arguments(params.arguments)
    loop_id = params.request_state or asked.loop_id or new_id()
    if asked.continue_from and not client.reads:
        raise NotPermitted(f"{client.name} may not look at runs, nor go on from one: leave out continue_from")
    request = await request_for(desk.service, asked)
    request = replace(request, metadata=owned(request.metadata, client.person))
    run = Run(desk, offer.agent, request, loop_id, client)
    if params.request_state:
        await _check_same(desk.service, loop_id, offer.agent, asked.prompt)
        await run.take(params.input_responses or {})
    came = await run.response(watched=client.wants_progress or offer.waits)
    if isinstance(came, SystemResponse):
        return answer_of(offer, came, client.version)
    if client.asks == "later" and not run.undecided:
        questions = {key: question_for(call) for key, call in came.items()}
        return InputRequiredResult(input_requests={**questions}, request_state=loop_id)
    return waiting(list(came.values()), loop_id, client.version, desk.how)


async def call_tool(
    desk: Desk, offer: ToolOffer, params: CallToolRequestParams, client: Client
) -> CallToolResult:
    """Run a tool of an agent's by itself: a plan with one step, recorded as any other."""
    step = {
        "name": offer.name,
        "type": "tool",
        "input": {"name": offer.name, "arguments": params.arguments or {}},
    }
    asked = SystemRequest(
        messages=(Message(Role.USER, (Text(f"run {offer.name}"),)),),
        mode=Mode.PLAN,
        plan={"steps": [step]},
        metadata=owned(None, client.person),
    )
    run = Run(desk, offer.agent, asked, new_id(), client)
    came = await run.response(watched=client.wants_progress)
    assert isinstance(came, SystemResponse), "a plan waits for nobody"
    return returned(came, client.version)


async def _check_same(service: Service, loop_id: str, agent: str, prompt: str) -> None:
    """Check that a run which a client goes on with is the one that its call had begun.

    Raises:
        MCPError: it is not.
    """
    try:
        events, _ = await service.load(loop_id)
    except FlyballError:
        events = []
    first = events[0] if events else None
    if not isinstance(first, Started) or first.spec.agent != agent or _text(first.prompt) != prompt:
        raise MCPError(INVALID_PARAMS, "requestState is of no run that this call had begun")


def _text(prompt: Message | None) -> str | None:
    return None if prompt is None else prompt.text
