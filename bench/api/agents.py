"""The agents that are served: `flyball serve bench.api.agents`. Their engines answer from code, at once.

`teller` waits at a gate (where it is given one), and then tells numbers: each is the moment, in nanoseconds
of the monotonic clock, at which its engine gave it. `opener` opens gates.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from random import uniform
from typing import Any

from flyball import Agent, tool
from flyball.core.messages import Message, Role, Text, ToolCall
from flyball.core.usage import Usage
from flyball.inference.cut import events_of
from flyball.inference.request import Request, Result
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import StreamEvent

ANSWER = "All is well, and the answer is 55."
_RESULT = Result(
    Message(Role.ASSISTANT, (Text(ANSWER),), usage=Usage(input_tokens=50, output_tokens=10), model="quick")
)
_GATES: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


async def _answer(request: Request) -> Result:
    return _RESULT


@tool
async def wait(gate: str) -> str:
    """Wait until a gate is open."""
    await _GATES[gate].wait()
    return "open"


async def _open(request: Request) -> str:
    _GATES[request.messages[-1].text].set()
    return "open"


def _asked(request: Request) -> dict[str, Any]:
    return json.loads(next(message.text for message in request.messages if message.role is Role.USER))


def _waiting(request: Request) -> Message | None:
    """The call by which it waits at its gate, if it has one and has not done so."""
    gate = _asked(request).get("gate")
    if gate is None or request.messages[-1].role is not Role.USER:
        return None
    return Message(Role.ASSISTANT, (ToolCall("wait", "wait", json.dumps({"gate": gate})),))


async def _tell_whole(request: Request) -> Message | str:
    return _waiting(request) or "".join([piece async for piece in _pieces(request)])


async def _tell(request: Request) -> AsyncGenerator[StreamEvent | str]:
    waiting = _waiting(request)
    if waiting is not None:
        for event in events_of(waiting):
            yield event
        return
    async for piece in _pieces(request):
        yield piece


async def _pieces(request: Request) -> AsyncGenerator[str]:
    asked = _asked(request)
    every: float = asked.get("every", 0.0)
    for _ in range(asked["pieces"]):
        # Models are not in step with each other.
        await asyncio.sleep(every * uniform(0.5, 1.5))
        yield f"{time.monotonic_ns()} "


quick = Agent(FunctionEngine(_answer, info="quick"), name="quick")
teller = Agent(FunctionEngine(_tell_whole, _tell, info="teller"), name="teller", tools=[wait])
opener = Agent(FunctionEngine(_open, info="opener"), name="opener")
