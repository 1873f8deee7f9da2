"""DefaultToolTimeout: how long a call may take, of tools that do not say it themselves."""

from __future__ import annotations

import math

from flyball.core.errors import UserError
from flyball.core.feature import Feature


class DefaultToolTimeout(Feature):
    """Seconds after which a call is cancelled, for an agent's tools that have no `timeout` of their own.

    It is recorded with each tool. Of several, the first holds.
    """

    name = "default_tool_timeout"

    def __init__(self, seconds: float) -> None:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not number or not math.isfinite(seconds) or seconds <= 0:
            raise UserError(f"DefaultToolTimeout takes seconds greater than 0, not {seconds!r}")
        self.seconds = float(seconds)

    def __repr__(self) -> str:
        return f"DefaultToolTimeout({self.seconds:g})"
