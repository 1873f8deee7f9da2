"""What is recorded, as resources: the newest runs, each run, and its steps."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from flyball.adapters.mcp.arguments import LOOPS
from flyball.adapters.mcp.results import address
from flyball.core.errors import FlyballError
from flyball.orchestrate.projections import trajectory
from flyball.orchestrate.projections.summary import LoopSummary, summary_of
from flyball.orchestrate.service import Service

_JSON = "application/json"
_LISTED = 20
_READ = 50
"""How many of the newest runs are listed, and told of at once."""
_NAME = 80
TEMPLATES = [
    ResourceTemplate(
        uri_template=f"{LOOPS}/{{loop_id}}",
        name="run",
        description="A run: how it stands, what it was asked, its answer or its error, what it used.",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template=f"{LOOPS}/{{loop_id}}/trajectory",
        name="trajectory",
        description="A run's model calls and tool calls, step by step.",
        mime_type=_JSON,
    ),
]


async def listed(service: Service) -> list[Resource]:
    """The newest runs, and the list of them."""
    found = [Resource(uri=LOOPS, name="runs", description="The newest runs.", mime_type=_JSON)]
    for one in await _newest(service, _LISTED):
        asked = " ".join(one.prompt.split())
        found.append(
            Resource(
                uri=address(one.loop_id),
                name=f"{one.agent}: {asked[:_NAME]}",
                description=one.stage,
                mime_type=_JSON,
            )
        )
    return found


async def read(service: Service, uri: str) -> ReadResourceResult:
    """A resource.

    Raises:
        MCPError: there is none at that address.
    """
    if uri == LOOPS:
        return _document(uri, [_written(one) for one in await _newest(service, _READ)])
    loop_id, _, part = uri.removeprefix(f"{LOOPS}/").partition("/")
    if not uri.startswith(f"{LOOPS}/") or not loop_id or part not in ("", "trajectory"):
        raise _missing(uri)
    loop_id = unquote(loop_id)
    try:
        if part:
            events, _ = await service.load(loop_id)
            return _document(uri, trajectory(events, "summary").write())
        told = _written(await summary_of(service.journal, loop_id))
        if not told["error"] and told["stage"] == "complete":
            told["answer"] = (await service.response(loop_id)).content
        return _document(uri, told)
    except FlyballError as error:
        raise _missing(uri, f"{error.code}: {error.message}") from error


async def _newest(service: Service, most: int) -> list[LoopSummary]:
    """The newest runs that were begun by nobody but a caller."""
    found: list[LoopSummary] = []
    before = ""
    while page := await service.journal.loops(before, most):
        for loop_id in page:
            one = await summary_of(service.journal, loop_id)
            if not one.parent_loop_id:
                found.append(one)
        if len(found) >= most:
            break
        before = page[-1]
    return found[:most]


def _written(summary: LoopSummary) -> dict[str, Any]:
    return msgspec.to_builtins(summary)


def _document(uri: str, content: Any) -> ReadResourceResult:
    text = str(msgspec.json.encode(content), "utf-8")
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])


def _missing(uri: str, why: str = "") -> MCPError:
    return MCPError(INVALID_PARAMS, f"there is no resource {uri[:200]!r}" + (f": {why}" if why else ""))
