"""What filters said of texts that come again: a history is looked at in each turn, and most of it is not new.

Only of filters is it remembered of which it is known what their word depends on: those of this package, and
none that are made from them. Of a text that has nothing in it no more is kept than its hash.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import Any

from flyball.validate.filters.injection import InjectionFilter
from flyball.validate.filters.pii import PIIFilter
from flyball.validate.filters.violation import Screened, TextFilter

_MOST = 10_000
_LONGEST = 4_096
"""How long a text may be that is kept for what was found in it, in characters."""
_SHORTEST = 16
"""Of how many characters a text is worth remembering."""


class Remembered:
    """What was said of the last texts, which is said again if it is asked for under the same conditions."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[Any, ...], Screened | None] = OrderedDict()

    def screen(self, one: TextFilter, text: str) -> Screened:
        """What a filter says of a text."""
        depends_on = _depends_on(one)
        if depends_on is None or len(text) < _SHORTEST:
            return one.screen(text)
        key = (sha256(text.encode("utf-8", "surrogatepass")).digest(), *depends_on)
        if key in self._said:
            self._said.move_to_end(key)
            return self._said[key] or Screened(text)
        screened = one.screen(text)
        clean = not screened.violations and screened.text == text
        if clean or len(text) <= _LONGEST:
            self._said[key] = None if clean else screened
            if len(self._said) > _MOST:
                self._said.popitem(last=False)
        return screened


def _depends_on(one: TextFilter) -> tuple[Any, ...] | None:
    """What a filter's word depends on beside the text; None where that is not known."""
    if type(one) is PIIFilter:
        return PIIFilter, one.kinds, one.replacement, one.block
    if type(one) is InjectionFilter:
        return InjectionFilter, one.patterns
    return None
