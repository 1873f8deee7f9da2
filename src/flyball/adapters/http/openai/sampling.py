"""How the model is to answer: the settings that both protocols share, as hints."""

from __future__ import annotations

from typing import Any

from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.openai.reading import param_of
from flyball.core.forms.fields import Fields, malformed
from flyball.core.messages import JSON
from flyball.orchestrate.contracts import ExecutionHints

_PENALTIES = ("presence_penalty", "frequency_penalty")


def read_hints(fields: Fields, *tokens: str, effort: JSON = None) -> ExecutionHints:
    """The hints of a request; `tokens` are the names of the limit of tokens: the first that is set counts.

    Raises:
        InvalidMessage: one is malformed.
        Refused: a number is none that it can be.
    """
    limits = [limit for name in tokens if (limit := _from(fields, name, 1)) is not None]
    options: dict[str, Any] = {
        name: number for name in _PENALTIES if (number := _between(fields, name, -2, 2)) not in (None, 0)
    }
    if effort is not None and not isinstance(effort, str):
        raise malformed(fields.place("reasoning_effort"), "text", effort)
    return ExecutionHints(
        max_tokens=limits[0] if limits else None,
        temperature=_between(fields, "temperature", 0, 2),
        top_p=_between(fields, "top_p", 0, 1) or None,
        seed=_seed(fields),
        stop=_stop(fields),
        reasoning_effort=effort or None,
        options=options or None,
    )


def _between(fields: Fields, key: str, lowest: float, highest: float) -> float | None:
    value = fields.number(key)
    if value is not None and not lowest <= value <= highest:
        raise _no_number(fields, key, f"from {lowest:g} to {highest:g}", value)
    return value


def _from(fields: Fields, key: str, lowest: int) -> int | None:
    value = fields.whole(key)
    if value is not None and not lowest <= value < 1 << 53:
        raise _no_number(fields, key, f"at least {lowest}", value)
    return value


def _seed(fields: Fields) -> int | None:
    value = fields.whole("seed")
    if value is not None and not -(1 << 63) <= value < 1 << 63:
        raise _no_number(fields, "seed", "a number of 64 bits", value)
    return value


def _no_number(fields: Fields, key: str, wanted: str, value: float) -> Refused:
    name = param_of(fields, key)
    return Refused(
        f"Invalid {name!r}: it should be {wanted}, but is {value!r:.80}.", param=name, code="invalid_value"
    )


def _stop(fields: Fields) -> tuple[str, ...]:
    value = fields.peek("stop")
    if isinstance(value, str):
        fields.any("stop")
        return (value,) if value else ()
    found: list[str] = []
    for item, where in fields.items("stop"):
        if not isinstance(item, str):
            raise malformed(where, "text", item)
        if item:
            found.append(item)
    return tuple(found)
