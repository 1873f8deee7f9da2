"""What a client asked of an agent, and the request that it becomes."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from mcp import MCPError
from mcp_types import INVALID_PARAMS
from msgspec import Meta, Struct

from flyball.core.correlation import Correlation
from flyball.core.errors import InvalidRequest
from flyball.core.messages import Message, Role, Text
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.correlation import loop_correlation
from flyball.orchestrate.service import Service
from flyball.orchestrate.state import State

LOOPS = "flyball://loops"
"""What the addresses of recorded loops begin with."""
_ID = r"^[A-Za-z0-9_-]{1,128}$"

AGENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "minLength": 1,
            "description": "What the agent is asked, or told to do. It sees nothing else of your talk.",
        },
        "continue_from": {
            "type": "string",
            "description": "The run whose conversation this goes on with: its id or flyball://loops/… link.",
        },
        "session_id": {
            "type": "string",
            "description": "Names what this belongs to in the records, where several runs belong together.",
        },
        "loop_id": {
            "type": "string",
            "pattern": _ID,
            "description": "An id for the run. Called again with it and the same prompt, nothing begins "
            "anew: the answer of that run is waited for.",
        },
    },
    "required": ["prompt"],
    "additionalProperties": False,
}


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a client asked of an agent."""

    prompt: Annotated[str, Meta(min_length=1)]
    continue_from: str = ""
    session_id: str = ""
    loop_id: str = ""


def read_arguments(given: dict[str, Any] | None) -> Arguments:
    """A call's arguments.

    Raises:
        MCPError: they are none.
    """
    try:
        read = msgspec.convert(given or {}, Arguments)
    except msgspec.ValidationError as error:
        raise MCPError(INVALID_PARAMS, f"the arguments are wrong: {error}") from error
    if read.loop_id and not re.fullmatch(_ID, read.loop_id):
        raise MCPError(INVALID_PARAMS, f"the arguments are wrong: loop_id must match {_ID}")
    return read


async def request_for(service: Service, asked: Arguments) -> SystemRequest:
    """The request that a call stands for.

    Raises:
        LoopNotFound: there is no run that it could go on from.
        InvalidRequest: that run is not one with a conversation, or is not over.
    """
    prompt = Message(Role.USER, (Text(asked.prompt),))
    if not asked.continue_from:
        return SystemRequest(messages=(prompt,), session_id=asked.session_id)
    before, ids = await _said_before(service, loop_named(asked.continue_from))
    return SystemRequest(messages=(*before, prompt), session_id=asked.session_id or ids.session_id)


async def _said_before(service: Service, loop_id: str) -> tuple[tuple[Message, ...], Correlation]:
    _, state = await service.load(loop_id)
    if not isinstance(state, State):
        raise InvalidRequest(f"run {loop_id!r} is no conversation", field="continue_from")
    if state.at != "done":
        raise InvalidRequest(
            f"run {loop_id!r} is not over: wait for its answer first, with loop_id", field="continue_from"
        )
    return tuple(state.history), loop_correlation(state)


def loop_named(given: str) -> str:
    """The loop that is meant by an id or by a link."""
    if not given.startswith(f"{LOOPS}/"):
        return given
    return unquote(given.removeprefix(f"{LOOPS}/").partition("/")[0])
