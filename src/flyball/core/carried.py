"""Carried: what a loop that goes on from another run takes over from it, besides what was said."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.usage import RunUsage


class Carried(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """How far a run had come.

    `step` is how many turns the history holds whole: the next one has the number after it. `usage` and the
    retries count on from here, so limits bind across runs. Time does not: it begins anew with each loop.
    `tool_state` is what stateful tools had come to when those turns were over.
    """

    run_id: str = ""
    parent_run_id: str = ""
    step: int = 0
    prompt: str = ""
    usage: RunUsage = RunUsage()
    retries: int = 0
    tool_retries: dict[str, int] | None = None
    tool_state: dict[str, Any] | None = None
