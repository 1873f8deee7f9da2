"""The smallest texts and numbers within a schema's bounds.

`nth` asks for another value than the ones before: 0 is the smallest, and for each `nth` there is a different
one, or None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flyball.inference.minimum.pattern import shortest_match

if TYPE_CHECKING:
    from fractions import Fraction

FORMATS: Mapping[str, str] = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "a@example.com",
    "idn-email": "a@example.com",
    "name-email": "a <a@example.com>",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "0.0.0.0",
    "ipv6": "::",
    "ipvanyaddress": "0.0.0.0",
    "ipv4network": "0.0.0.0/0",
    "ipv6network": "::/0",
    "ipvanynetwork": "0.0.0.0/0",
    "ipv4interface": "0.0.0.0/0",
    "ipv6interface": "::/0",
    "ipvanyinterface": "0.0.0.0/0",
    "uri": "https://example.com/",
    "uri-reference": "https://example.com/",
    "iri": "https://example.com/",
    "iri-reference": "https://example.com/",
    "multi-host-uri": "https://example.com/",
    "uri-template": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uuid1": "00000000-0000-1000-8000-000000000000",
    "uuid3": "00000000-0000-3000-8000-000000000000",
    "uuid4": "00000000-0000-4000-8000-000000000000",
    "uuid5": "00000000-0000-5000-8000-000000000000",
    "uuid7": "00000000-0000-7000-8000-000000000000",
    "relative-json-pointer": "0",
    "json-string": "null",
    "path": ".",
    "file-path": ".",
    "directory-path": ".",
    "color": "#000",
}
"""A value for each format that an empty text does not satisfy."""


_LONGEST = 1_000_000


def smallest_text(schema: Mapping[str, Any], nth: int = 0) -> str | None:
    """A text with the schema's pattern, format and length, or None where none was found."""
    least: int = schema.get("minLength", 0)
    most: int | None = schema.get("maxLength")
    if least > _LONGEST or (most is not None and most < least):
        return None
    if "pattern" in schema:
        return shortest_match(schema["pattern"], least + nth, most)
    example = FORMATS.get(schema.get("format", ""))
    if example is not None:
        fits = least <= len(example) and (most is None or len(example) <= most)
        return example if fits and nth == 0 else None
    if most is None or least + nth <= most:
        return "a" * (least + nth)
    # No room left to grow: count in letters from here on.
    count, letters = nth - (most - least), ""
    while count:
        count, digit = divmod(count, 26)
        letters = chr(ord("a") + digit) + letters
    return letters.rjust(most, "a") if len(letters) <= most else None


def smallest_number(schema: Mapping[str, Any], *, whole: bool, nth: int = 0) -> int | float | None:
    """A number within the schema's bounds, the whole one nearest to nought where there is one."""
    from fractions import Fraction

    bounds = _Range(
        *_bound(schema, "minimum", "exclusiveMinimum", max),
        *_bound(schema, "maximum", "exclusiveMaximum", min),
    )
    step = exact(schema["multipleOf"]) if "multipleOf" in schema else None
    if whole:
        # The whole multiples of p/q, in lowest terms, are the multiples of p.
        step = Fraction(1 if step is None else step.numerator)
    found = bounds.multiple(step or Fraction(1), nth)
    if found is None and step is None:
        found = bounds.between(nth)
    if found is None:
        return None
    return int(found) if found.denominator == 1 else float(found)


def within_bounds(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a text or a number keeps to a schema's bounds; other values have none."""
    if isinstance(value, str):
        least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
        return least <= len(value) <= most and re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
    step = schema.get("multipleOf")
    fits_step = step is None or (exact(value) / exact(step)).denominator == 1
    return low <= value <= high and above < value < below and fits_step


def exact(number: int | float) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    from fractions import Fraction

    return Fraction(repr(number))


def _bound(
    schema: Mapping[str, Any], closed: str, open_: str, tighter: Callable[..., Any]
) -> tuple[Fraction | None, bool]:
    """The tighter of the two keywords, and whether it is an open bound."""
    inside = exact(schema[closed]) if closed in schema else None
    outside = exact(schema[open_]) if open_ in schema else None
    if outside is None or (inside is not None and inside != outside and tighter(inside, outside) == inside):
        return inside, False
    return outside, True


class _Range(NamedTuple):
    """Where a number may lie; a bound that is None is not there."""

    low: Fraction | None
    low_open: bool
    high: Fraction | None
    high_open: bool

    def multiple(self, step: Fraction, nth: int) -> Fraction | None:
        """The multiple of `step` nearest to nought; then those further up, then those further down."""
        least = most = None
        if self.low is not None:
            least = math.ceil(self.low / step)
            least += self.low_open and least * step == self.low
        if self.high is not None:
            most = math.floor(self.high / step)
            most -= self.high_open and most * step == self.high
        start = 0
        if least is not None and least > 0:
            start = least
        elif most is not None and most < 0:
            start = most
        up = nth if most is None else min(nth, most - start)
        count = start + nth if up == nth else start - (nth - up)
        inside = (least is None or count >= least) and (most is None or count <= most)
        return count * step if inside else None

    def between(self, nth: int) -> Fraction | None:
        """A number in a range that holds no whole one."""
        if self.low is None or self.high is None or self.low > self.high:
            return None
        if nth == 0 and not self.low_open:
            return self.low
        if nth == 0 and not self.high_open:
            return self.high
        return self.low + (self.high - self.low) / (nth + 2) if self.low < self.high else None
