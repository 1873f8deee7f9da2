"""How a model is asked to answer. `None` means unset, everywhere: the engine's own default holds."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace


class ModelSettings(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Settings of a model call. An explicit temperature of 0.0 is kept: it asks for determinism.

    `options` goes to the engine untouched. A thinking budget removes the temperature, as providers demand.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    thinking: bool | None = None
    thinking_budget: int | None = None
    reasoning_effort: str | None = None
    options: dict[str, Any] | None = None

    def over(self, other: ModelSettings) -> ModelSettings:
        """These settings laid over others: what is unset here comes from there; options are merged."""
        if self == _UNSET:
            return other
        mine = {key: value for key, value in asdict(self).items() if value not in (None, ())}
        if self.options is not None and other.options:
            mine["options"] = other.options | self.options
        return replace(other, **mine)

    @property
    def effective_temperature(self) -> float | None:
        """The temperature to send: none where a thinking budget is set."""
        return None if self.thinking_budget is not None else self.temperature


_UNSET = ModelSettings()

PAGANTIC = ModelSettings(max_tokens=2048)
"""pagantic's defaults."""
SEMSTREAMS = ModelSettings(temperature=0.2, max_tokens=4096)
"""SemStreams' defaults."""
STRUCTURED = ModelSettings(temperature=0.3, thinking=False)
"""pagantic's settings for structured calls."""
