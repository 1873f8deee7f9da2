"""Personal data and keys in a text: six kinds, found by their form and by what else is known of it.

An SSN has ranges that were never given out, a card's number a check digit (Luhn), an octet of an address is
no larger than 255, and a key that has no known beginning looks random. What only looks similar is left alone.

It is found in the text as it is, and in the text as it looks (`plain`): with characters in it that cannot be
seen, with full-width letters or digits, with spaces, hyphens and letters of any kind. What is written in
words ("ann at example dot org"), in pieces, or encoded is not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from ipaddress import ip_address
from itertools import pairwise
from math import log2
from typing import TypeAlias

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.violation import Severity
from flyball.validate.filters.plain import LONG_DASH, Places, is_plain, plain
from flyball.validate.filters.violation import Change, Screened, Violation, changed


class PIIKind(StrEnum):
    """What can be found."""

    EMAIL = "email"
    PHONE = "phone"
    SSN = "ssn"
    CREDIT_CARD = "credit_card"
    API_KEY = "api_key"
    IP_ADDRESS = "ip_address"


class Found(Struct, frozen=True):
    """One place in a text, from `start` up to `stop`, and what stands there."""

    kind: PIIKind
    start: int
    stop: int


_EMAIL = re.compile(r"\b[^\W_][\w.%+-]{0,63}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b")
_DASH = rf"[-{LONG_DASH}]"
_BETWEEN = rf"[ .{LONG_DASH}-]"
_PHONE = re.compile(
    rf"(?<![\w.+-])(?:(?:\+\d{{1,3}}{_BETWEEN}?|1{_BETWEEN})?"
    rf"(?:\(\d{{3}}\){_BETWEEN}?|\d{{3}}{_BETWEEN})\d{{3}}{_BETWEEN}?\d{{4}}"
    rf"|\+\d{{1,3}}(?:{_BETWEEN}?\d{{2,4}}){{2,5}})(?![\w-])"
)
_SSN = re.compile(
    rf"(?<![\w-])(?!000|666|9)\d{{3}}(?: (?!00)\d\d |{_DASH}(?!00)\d\d{_DASH})(?!0000)\d{{4}}(?![\w-])"
)
_CARD_ROW = re.compile(rf"\d(?:[ {LONG_DASH}-]?\d){{12,}}+")
_NO_START = re.compile(r"[\w.-]")
_APART = rf"(?:[ \t]{{1,4}}|[ \t]{{0,2}}[./_{LONG_DASH}-][ \t]{{0,2}})"
_CARD_GROUPS = re.compile(
    rf"(?<![\w.-])(?:(?:4\d|5\d|6\d|3[0568]|2[2-7])\d\d(?:{_APART}\d{{4}}){{3}}"
    rf"|3[0689]\d\d{_APART}\d{{6}}{_APART}\d{{4}}|3[47]\d\d{_APART}\d{{6}}{_APART}\d{{5}})"
    r"(?![^\W_]|[._/]\d|(?:[ \t]{1,4}\d{4}){2}(?!\d))"
)
"""With dots, strokes, and more than a space only in the groups of a card: rows of dates, too, have them."""
_PARAGRAPHS = {0x2028: " ", 0x2029: " "}
"""What ends a line, and is shown as a space, if at all: in a number it is one."""
_KNOWN_KEY = re.compile(
    r"(?<![A-Za-z0-9-])(?:sk-[\w-]{16,}+|gh[opsur]_\w{36,}+|github_pat_\w{22,}+|glpat-[\w-]{20,}+"
    r"|xox[abprs]-[\w-]{10,}+|AIza[\w-]{35,}+|hf_[A-Za-z]{30,}+)"
    r"|(?<![\w-])[rsp]k_(?:live|test)_\w{16,}+|(?<=_)[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}+"
    r"|(?<![A-Z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Z0-9])",
    re.ASCII,
)
"""What a known key begins with, and how long it is at least. It ends where no character of it can follow."""
_GLUED_KEY = re.compile(
    r"(?<=[A-Za-z0-9-])(?:sk-|[rsp]k_(?:live|test)_)(?:[a-z]{3,8}-)?([A-Za-z0-9]{20})[\w-]*+", re.ASCII
)
"""The same right behind a letter, as `sk-` stands in words, too: what follows looks as no word does."""
_TOKEN = re.compile(r"(?<![\w-])[\w-]{32,512}(?![\w-])", re.ASCII)
_IP = re.compile(
    r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:]))"
)
_CARD_LENGTHS = range(13, 20)
_CARD_FIRST = "23456"
_TURNS = 8
"""How often the kind of character changes, of twenty, where they look random."""
_RANDOM = 3.5
"""The bits a character from which a token looks random."""


_Finder: TypeAlias = Callable[[str], Iterator[tuple[int, int]]]


def _matches(pattern: re.Pattern[str]) -> _Finder:
    return lambda text: (match.span() for match in pattern.finditer(text))


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """Numbers of 13 to 19 digits, perhaps in groups, whose check digit is right."""
    for row in _CARD_ROW.finditer(text):
        yield from _cards_in(text, *row.span())
    for match in _CARD_GROUPS.finditer(text):
        sums = _check_sums(match[0])
        if sums[(len(sums[0]) - 1) % 2][-1] % 10 == 0:
            yield match.span()


def _cards_in(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The cards in a row of digits: each from where it may begin, as long as it may be."""
    places = [at for at in range(start, stop) if text[at].isdigit()]
    sums, first = _check_sums(text[start:stop]), 0
    while first + _CARD_LENGTHS[0] <= len(places):
        at, longest = places[first], None
        if text[at] in _CARD_FIRST and not (at and _NO_START.match(text, at - 1)):
            for last in range(first + _CARD_LENGTHS[0], min(first + _CARD_LENGTHS[-1], len(places)) + 1):
                end, summed = places[last - 1] + 1, sums[last % 2]
                if (summed[last] - summed[first]) % 10 == 0 and not text[end : end + 1].isalnum():
                    longest = last
        if longest is not None:
            yield at, places[longest - 1] + 1
        first = longest or first + 1


def _check_sums(text: str) -> tuple[list[int], list[int]]:
    """The sums of the digits so far, where every second is doubled: those before an even, and an odd place.

    By the one a number checks (Luhn) that ends at an even place, by the other one that ends at an odd one.
    """
    even, odd = [0], [0]
    for number, char in enumerate([char for char in text if char.isdigit()]):
        digit = int(char)
        doubled = 2 * digit - 9 * (digit > 4)
        even.append(even[-1] + (digit if number % 2 else doubled))
        odd.append(odd[-1] + (doubled if number % 2 else digit))
    return even, odd


def _keys(text: str) -> Iterator[tuple[int, int]]:
    for match in _TOKEN.finditer(text):
        if _looks_random(match[0]):
            yield match.span()
    for match in _KNOWN_KEY.finditer(text):
        yield match.span()
    for match in _GLUED_KEY.finditer(text):
        if _is_mixed(match[1]):
            yield match.span()


def _is_mixed(text: str) -> bool:
    """Whether small letters, large ones and digits take turns, as in no name that is made of words."""
    kinds = [char.isdigit() + 2 * char.isupper() for char in text]
    return sum(one != other for one, other in pairwise(kinds)) >= _TURNS


def _looks_random(token: str) -> bool:
    """Whether a token has letters of both cases and digits, as no word has, and hardly repeats itself."""
    if not (any(map(str.isdigit, token)) and any(map(str.isupper, token)) and any(map(str.islower, token))):
        return False
    size = len(token)
    return -sum(n / size * log2(n / size) for n in Counter(token).values()) >= _RANDOM


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    for match in _IP.finditer(text):
        groups = sum(bool(group) for group in match[0].split(":"))
        if ":" in match[0] and groups < 2 and match[0] != "::1":
            continue  # `::`, `::a` and the like are addresses, and more often something else
        try:
            ip_address(match[0])
        except ValueError:
            continue
        yield match.span()


_FINDERS: dict[PIIKind, _Finder] = {
    PIIKind.EMAIL: _matches(_EMAIL),
    PIIKind.API_KEY: _keys,
    PIIKind.CREDIT_CARD: _cards,
    PIIKind.SSN: _matches(_SSN),
    PIIKind.IP_ADDRESS: _addresses,
    PIIKind.PHONE: _matches(_PHONE),
}
"""Who finds what, in the order in which they have a claim on a place."""

ALL_KINDS = tuple(PIIKind)


def find_pii(text: str, kinds: Iterable[PIIKind] = ALL_KINDS) -> tuple[Found, ...]:
    """What stands in a text, from its beginning to its end. No two places overlap."""
    wanted = frozenset(kinds)
    found: list[Found] = []
    taken = bytearray(len(text))
    looks = text if is_plain(text) else plain(text.translate(_PARAGRAPHS))
    places: Places | None = None
    for kind, finder in _FINDERS.items():
        if kind not in wanted:
            continue
        spans = list(finder(looks))
        if looks is not text:
            places = places or (Places(text) if spans else None)
            spans = [places.span(*one) for one in spans] if places is not None else spans
            spans += finder(text)  # what is not seen may also part what is there
        for start, stop in spans:
            if not any(taken[start:stop]):
                taken[start:stop] = b"\1" * (stop - start)
                found.append(Found(kind, start, stop))
    return tuple(sorted(found, key=_start))


def _start(found: Found) -> int:
    return found.start


class PIIFilter:
    """Finds personal data and keys, and puts `[email]`, `[phone]` and the like in their place.

    Args:
        kinds: what is looked for; without it, all of `PIIKind`.
        replacement: what is put there; `{kind}` in it stands for what was found.
        block: whether it may not pass even so.

    Raises:
        UserError: a kind that is not known, or a replacement that is no text.
    """

    name = "pii"

    def __init__(
        self,
        kinds: Iterable[PIIKind | str] | None = None,
        replacement: str = "[{kind}]",
        *,
        block: bool = False,
    ) -> None:
        self.kinds = as_kinds(kinds)
        if not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"a replacement is text, not {replacement!r}")
        self.replacement = replacement
        self.block = block

    def screen(self, text: str) -> Screened:
        """The text with what was found replaced."""
        found = find_pii(text, self.kinds)
        if not found:
            return Screened(text)
        changes = tuple(
            [Change(one.start, one.stop, self.replacement.replace("{kind}", one.kind.value)) for one in found]
        )
        counted = Counter([one.kind for one in found])
        violations = [
            Violation(self.name, kind.value, _SEVERITY[kind], count, self.block)
            for kind, count in counted.items()
        ]
        return Screened(changed(text, changes), tuple(violations), changes)


_SEVERITY: dict[PIIKind, Severity] = {
    PIIKind.EMAIL: Severity.MEDIUM,
    PIIKind.PHONE: Severity.MEDIUM,
    PIIKind.SSN: Severity.CRITICAL,
    PIIKind.CREDIT_CARD: Severity.CRITICAL,
    PIIKind.API_KEY: Severity.CRITICAL,
    PIIKind.IP_ADDRESS: Severity.LOW,
}


def as_kinds(given: Iterable[PIIKind | str] | None) -> tuple[PIIKind, ...]:
    """Kinds as they were given; all of them where none are.

    Raises:
        UserError: one is not known, or there are none.
    """
    if given is None:
        return ALL_KINDS
    try:
        kinds = tuple([PIIKind(kind) for kind in ([given] if isinstance(given, str) else given)])
    except (ValueError, TypeError):
        raise UserError(f"kinds= takes some of {', '.join(PIIKind)}, not {given!r}") from None
    if not kinds:
        raise UserError(f"kinds= takes at least one of {', '.join(PIIKind)}")
    return kinds
