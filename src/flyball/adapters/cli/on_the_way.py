"""What wrappers around an engine noted of a model call, in words: tries that failed, a cache, a route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from flyball.core.encodable import as_text
from flyball.inference.notes import ATTEMPTS, CACHED, ROUTE


def on_the_way(noted: Mapping[str, Any] | None) -> Iterator[str]:
    """A line for each thing that was noted, in the order in which it happened."""
    told = noted or {}
    if isinstance(told.get(ROUTE), dict):
        route = cast("dict[str, Any]", told[ROUTE])
        decided = {key: value for key, value in route.items() if key != "name"}
        yield f"routed to {route.get('name')}" + (f" ({as_text(decided)})" if decided else "")
    attempts: Any = told.get(ATTEMPTS)
    for number, attempt in enumerate(cast("list[Any]", attempts) if isinstance(attempts, list) else (), 1):
        if isinstance(attempt, dict):
            failed = cast("dict[str, Any]", attempt)
            why = f"{failed.get('code')}: {failed.get('message')}"
            yield f"try {number} of {failed.get('model')} failed: {why}"
    if CACHED in told:
        yield "it came from the cache, and cost nothing this time"
