"""Responses and errors as results of tools: what the model that called reads, and what its client does."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from mcp_types import CallToolResult, ResourceLink, TextContent
from mcp_types.version import is_version_at_least

from flyball.adapters.mcp.arguments import LOOPS
from flyball.adapters.mcp.offering import AgentOffer
from flyball.core.encodable import as_text
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.family import WaitingCall

_LINKS = "2025-06-18"
"""The protocol's version from which on results may have links in them."""


def address(loop_id: str) -> str:
    """A recorded loop's address."""
    return f"{LOOPS}/{quote(loop_id, safe='')}"


def answer_of(offer: AgentOffer, response: SystemResponse, version: str) -> CallToolResult:
    """What came of an agent's run."""
    if response.error is not None:
        return failed(response.error, response.loop_id, version)
    structured: Any = response.structured_output
    text = response.content
    if structured is not None:
        structured = {offer.key: structured} if offer.key is not None else structured
        text = as_text(structured)
        if not isinstance(structured, dict):
            structured = None  # clients take objects alone
    return CallToolResult(
        content=[TextContent(text=text), *_link(response.loop_id, version)],
        structured_content=structured,
        _meta=_meta(response.loop_id),
    )


def returned(response: SystemResponse, version: str) -> CallToolResult:
    """What came of a tool's call: of a plan with one step."""
    if response.error is None:
        return CallToolResult(content=[TextContent(text=response.content)], _meta=_meta(response.loop_id))
    error = response.error
    calls = response.tool_calls_made
    if calls and calls[-1].error:
        # What the tool itself said, without the step that it was run in.
        error = msgspec.structs.replace(error, message=calls[-1].error)
    return failed(error, response.loop_id, version, link=False)


def failed(error: SystemError, loop_id: str, version: str, *, link: bool = True) -> CallToolResult:
    """What went wrong: its code and what to do for the model, the rest for programs."""
    told: dict[str, Any] = {
        "code": error.code,
        "category": str(error.category),
        "retryable": error.retryable,
    }
    links = _link(loop_id, version) if link else []
    return CallToolResult(
        content=[TextContent(text=f"{error.code}: {error.message}"), *links],
        is_error=True,
        _meta={**_meta(loop_id), "flyball/error": told},
    )


def waiting(calls: list[WaitingCall], loop_id: str, version: str, how: str) -> CallToolResult:
    """That a run waits for a person who could not be asked: who it waits for, and how to tell it."""
    lines = [_wanted(one) for one in calls]
    text = "\n".join(
        [
            "AWAITING_APPROVAL: the run waits for a person to approve:",
            *[f"- {line}" for line in lines],
            f"To approve: {how.format(loop_id=loop_id)}",
            f"Then call this tool again with the same prompt and loop_id={loop_id} to have the answer.",
        ]
    )
    return CallToolResult(
        content=[TextContent(text=text), *_link(loop_id, version)],
        is_error=True,
        _meta={
            **_meta(loop_id),
            "flyball/waiting": [{"loop_id": one.loop_id, "call_id": one.call.id} for one in calls],
        },
    )


def _wanted(one: WaitingCall) -> str:
    """What waits. Of an answer only that it does: who reads this is the one who must not have it yet."""
    if one.answer:
        return f"an answer of {one.agent} ({one.call.id})"
    return f"{one.agent} wants to run {one.call.name} {one.call.args_json}"


def _meta(loop_id: str) -> dict[str, Any]:
    return {"flyball/loop_id": loop_id} if loop_id else {}


def _link(loop_id: str, version: str) -> list[ResourceLink]:
    """The run's own address, for who wants to see what happened, or to go on from it."""
    if not loop_id or not is_version_at_least(version, _LINKS):
        return []
    return [
        ResourceLink(
            uri=address(loop_id),
            name=f"run {loop_id}",
            description="This run: its record, and what continue_from takes to go on with it.",
            mime_type="application/json",
        )
    ]
