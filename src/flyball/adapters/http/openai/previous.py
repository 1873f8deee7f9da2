"""Responses that go on from others, and responses that are asked for again: both are loops in a journal."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.openai.answering import (
    Begun,
    begin,
    begin_anew,
    given_before,
    go_on,
)
from flyball.adapters.http.openai.call_ids import read_call_name
from flyball.adapters.http.openai.errors import Refused, no_response, refusing
from flyball.adapters.http.openai.going_on import Answering
from flyball.adapters.http.openai.response_request import (
    PREFIX,
    ResponseRequest,
    no_previous,
    response_param,
)
from flyball.adapters.http.openai.response_writing import Frame
from flyball.adapters.http.openai.serving import Serving
from flyball.core.events import Started
from flyball.core.messages import Message, Role, ToolResult
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.machine import fold
from flyball.orchestrate.matching import begun_as
from flyball.orchestrate.state import State
from flyball.orchestrate.system import System
from flyball.orchestrate.waiting import messages_so_far


async def begin_response(serving: Serving, system: System, asked: ResponseRequest) -> Begun:
    """Begin to answer a request: a loop of its own, with what was said before, or one that is gone on with.

    Raises:
        Refused: it cannot be served.
    """
    if not asked.previous:
        _refuse_outputs(asked, {})
        _check_asked(asked.request.messages)
        return await begin(serving, system, asked.request, response_param)
    journal = system.journal
    with refusing(response_param):
        events = [] if journal is None else await journal.read(asked.previous)
        if not events or not isinstance(events[0], Started):
            raise no_previous(f"{PREFIX}{asked.previous}")
        decided = follow(asked, fold(events))
        if isinstance(decided, Answering):
            return await go_on(serving, system, decided, events)
        request = replace(asked.request, messages=decided.messages)
        _check_asked(request.messages)
        return begin_anew(serving, system, request, system.policy(request))


class Told(Struct, frozen=True):
    """A conversation for a loop of its own."""

    messages: tuple[Message, ...]


def follow(asked: ResponseRequest, state: State) -> Answering | Told:
    """What becomes of a request that goes on from a loop: results for that loop, or a new conversation.

    Outputs that the loop has already may be sent again: the answer is what followed from them.

    Raises:
        Refused: an output is missing, or of no call that waits; or the loop is still under way.
    """
    if again := _sent_again(asked, state):
        return Answering(state.loop_id, again, ())
    system = tuple([one for one in asked.request.messages if one.role is Role.SYSTEM])
    before = [one for one in messages_so_far(state) if one.role is not Role.SYSTEM]
    if not waits_for_results(state):
        if state.at != "done":
            raise Refused(
                f"Response {PREFIX}{state.loop_id} is still under way.",
                status=409,
                param="previous_response_id",
            )
        _refuse_outputs(asked, {})
        return Told((*system, *before, *asked.items.messages))
    waiting = {state.calls[index].id: state.calls[index].name for index in sorted(state.deferred)}
    outputs = _refuse_outputs(asked, waiting)
    missing = [name for name in waiting if name not in outputs]
    if missing:
        raise Refused(
            f"No tool output found for function call {missing[0]}.", param="input", code="missing_tool_output"
        )
    if not asked.items.messages:
        return Answering(state.loop_id, tuple(outputs.values()), ())
    there = before.pop().tool_results if before[-1].role is Role.TOOL else ()
    given = {one.call_id: one for one in there} | outputs
    results = Message(Role.TOOL, tuple([given[call.id] for call in state.calls]))
    return Told((*system, *before, results, *asked.items.messages))


def _sent_again(asked: ResponseRequest, state: State) -> tuple[ToolResult, ...]:
    """The outputs of a request, if it says nothing else, and the loop was given some for all of their calls.

    Whether they are the same is looked at where results are taken.
    """
    given = [one for message in state.history for one in message.tool_results]
    given += [one for one in state.results if one is not None]
    tools = state.spec.tools
    there = {one.call_id: one.name for one in given if one.name in tools and tools[one.name].outside}
    known = {_call_id(name) for name in asked.items.outputs} <= there.keys()
    return () if asked.items.messages or not known else tuple(_refuse_outputs(asked, there).values())


def _call_id(name: str) -> str:
    """The id that a call has in its loop."""
    call = read_call_name(name)
    return name if call is None else call.call_id


def _refuse_outputs(asked: ResponseRequest, waiting: dict[str, str]) -> dict[str, ToolResult]:
    """The outputs by the ids of the loop's calls, if all are of calls that wait."""
    found: dict[str, ToolResult] = {}
    for name, output in asked.items.outputs.items():
        call_id = _call_id(name)
        if call_id not in waiting:
            raise Refused(
                f"No tool call found for function call output with call_id {name}.",
                param="input",
                code="invalid_value",
            )
        found[call_id] = replace(output, call_id=call_id, name=waiting[call_id])
    return found


def _check_asked(messages: tuple[Message, ...]) -> None:
    if not messages or messages[-1].role not in (Role.USER, Role.TOOL):
        raise Refused(
            "The last item of 'input' should be a message, or an output.", param="input", code="invalid_value"
        )


async def found_response(serving: Serving, response_id: str) -> tuple[Frame, SystemResponse | None]:
    """A recorded response, and what its documents say; None of one that is still under way.

    Raises:
        Refused: there is none of that id.
    """
    loop_id = response_id.removeprefix(PREFIX)
    for name in serving.agents():
        system = serving.system(name)
        journal = None if system is None else system.journal
        events = [] if journal is None or not loop_id else await journal.read(loop_id)
        if system is None or not events or not isinstance(events[0], Started):
            continue
        agent = begun_as(events).spec.agent
        if agent != name and agent in serving.agents():
            continue  # another one's, in the same journal
        frame = Frame(loop_id, name, int(events[0].at), given_before(events))
        state = fold(events)
        told = state.at == "done" or waits_for_results(state)
        return frame, await system.replay(loop_id) if told else None
    raise no_response(response_id)
