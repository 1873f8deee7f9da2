"""Whether an answer is right. Pure functions.

Before two values are compared they are normalised, in the same way on both sides:
- strings: trimmed, in lower case, white space inside them as one blank, without quotation marks around them
  and without a full stop at the end;
- numbers by value: 54 is 54.0; a boolean is no number, and a string is none either;
- lists as bags: the order does not matter;
- null is the same as a field that is not there.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bench.control.tasks import AnyOf, Call, ExtractionTask, Has, ToolTask

_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb"


def right_tools(task: ToolTask, calls: Sequence[Call]) -> bool:
    """Whether the right tools are called, each as often as it should be, whatever the arguments."""
    return Counter(call.tool for call in task.calls) == Counter(call.tool for call in calls)


def right_calls(task: ToolTask, calls: Sequence[Call]) -> bool:
    """Whether the right tools are called with the right arguments, in any order."""
    return len(task.calls) == len(calls) and _paired(list(task.calls), list(calls))


def right_fields(task: ExtractionTask, value: Mapping[str, Any]) -> dict[str, bool]:
    """For each field of the schema, whether it is right."""
    return {name: same(wanted, value.get(name)) for name, wanted in task.answer.items()}


def right_value(task: ExtractionTask, value: Mapping[str, Any]) -> bool:
    """Whether all fields are right."""
    return all(right_fields(task, value).values())


def same(wanted: Any, given: Any) -> bool:
    """Whether a value is the wanted one after normalisation, or meets the wanted `AnyOf` or `Has`."""
    match wanted:
        case AnyOf(values):
            return any(same(value, given) for value in values)
        case Has(words):
            return isinstance(given, str) and all(normal_text(word) in normal_text(given) for word in words)
        case bool() | None:
            return given is wanted
        case str():
            return isinstance(given, str) and normal_text(wanted) == normal_text(given)
        case int() | float():
            return isinstance(given, int | float) and not isinstance(given, bool) and given == wanted
        case list():
            return isinstance(given, list) and _same_bag(cast("list[Any]", wanted), cast("list[Any]", given))
        case _:
            raise TypeError(f"a known answer holds no {type(wanted).__name__}: {wanted!r}")


def normal_text(text: str) -> str:
    """A string as it is compared."""
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    while True:
        bare = plain.strip(_QUOTES + " ").removesuffix(".")
        if bare == plain:
            return plain
        plain = bare


def _same_bag(wanted: list[Any], given: list[Any]) -> bool:
    left = list(given)
    for value in wanted:
        at = next((n for n, other in enumerate(left) if same(value, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _paired(wanted: list[Call], given: list[Call]) -> bool:
    """Whether each wanted call can have a given one of its own. Few calls, so all ways are tried."""
    if not wanted:
        return True
    first, *rest = wanted
    return any(
        _same_call(first, call) and _paired(rest, given[:at] + given[at + 1 :])
        for at, call in enumerate(given)
    )


def _same_call(wanted: Call, given: Call) -> bool:
    names = wanted.args.keys() | {name for name, value in given.args.items() if value is not None}
    return wanted.tool == given.tool and all(
        name in wanted.args and same(wanted.args[name], given.args.get(name)) for name in names
    )
