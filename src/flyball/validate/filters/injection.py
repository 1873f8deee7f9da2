"""Text that would have a model take it for instructions: six patterns, by what such attempts say.

They are found by their wording, in English, also where it is written in other letters of the same look
(`plain`), with strokes, commas or invisible characters in it, or encoded (`encoded`).

Not found is what is worded otherwise, in another language, misspelt or with digits for letters ("1gn0re"),
with other letters between, backwards, in a cipher, encoded twice or in another way than base64 and
hexadecimal digits, spread over several messages, or in what is not text: who knows the patterns gets around
them. This is a sieve, and no proof. What a model must never do is kept from it by its tools and their
approval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from flyball.core.errors import UserError
from flyball.core.violation import Severity
from flyball.validate.filters.encoded import decoded, in_tags
from flyball.validate.filters.plain import LONG_DASH, plain, plain_apart
from flyball.validate.filters.violation import Screened, Violation


class InjectionPattern(StrEnum):
    """What is looked for."""

    INSTRUCTION_OVERRIDE = "instruction_override"
    """"Ignore all previous instructions"."""
    JAILBREAK_PERSONA = "jailbreak_persona"
    """"You are now DAN"."""
    SYSTEM_INJECTION = "system_injection"
    """"System: …" at the beginning of a line, and the marks of chat templates."""
    ENCODED_INJECTION = "encoded_injection"
    """One of the others, in base64 or in hexadecimal digits."""
    DELIMITER_INJECTION = "delimiter_injection"
    """"---END INSTRUCTIONS---"."""
    ROLE_CONFUSION = "role_confusion"
    """"Your new role is …"."""


_FLAGS = re.IGNORECASE | re.MULTILINE
_S = rf"[\s_,;*\"~|/\\`{LONG_DASH}-]{{1,5}}"
"""What may stand between words: not what ends a sentence. Longer rows of it are made shorter first."""
_WORDS: dict[InjectionPattern, re.Pattern[str]] = {
    InjectionPattern.INSTRUCTION_OVERRIDE: re.compile(
        rf"\b(?:ignore|disregard|forget|override|bypass|skip){_S}"
        rf"(?:[a-z']{{1,12}}{_S}){{0,4}}?"
        r"(?:previous|prior|above|earlier|preceding|former|all|your|system)"
        rf"{_S}(?:[a-z']{{1,12}}{_S}){{0,3}}?"
        r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|commands?|constraints?)\b",
        _FLAGS,
    ),
    InjectionPattern.JAILBREAK_PERSONA: re.compile(
        rf"\byou{_S}are{_S}now{_S}"
        rf"(?:dan|stan|dude|aim|evil|unrestricted|unfiltered|uncensored|jailbroken|free{_S}from)\b"
        rf"|\bdo{_S}anything{_S}now\b|\bDAN{_S}mode\b|\bjailbreak(?:ed)?{_S}mode\b"
        rf"|\b(?:developer|god|sudo|root){_S}mode{_S}(?:is{_S})?(?:enabled|activated|on)\b"
        rf"|\b(?:enable|activate|enter){_S}(?:developer|god|sudo|jailbreak){_S}mode\b"
        rf"|\bpretend{_S}(?:that{_S})?you{_S}(?:have{_S}no|are{_S}not{_S}bound{_S}by|do{_S}not{_S}have)\b"
        rf"|\bwithout{_S}any{_S}(?:restrictions|filters|censorship|ethical{_S}guidelines)\b",
        _FLAGS,
    ),
    InjectionPattern.SYSTEM_INJECTION: re.compile(
        r"^[ \t>*]{0,8}(?:\[|<|#{1,6}[ \t]{0,2})?(?:system|developer)"
        r"(?:[ _-](?:prompt|message|override|instructions?))?[\]>]?[ \t]{0,4}:"
        r"|<\|(?:im_start|im_end|system|assistant|user|endoftext|start_header_id)\|>"
        r"|\[/?INST\]|<</?SYS>>|<(?:/)?system(?:_prompt)?>",
        _FLAGS,
    ),
    InjectionPattern.DELIMITER_INJECTION: re.compile(
        r"(?:-{3}|={3}|#{3}|\*{3}|_{3}|~{3}|`{3}|<<)[ \t\[(<]{0,4}(?:end|begin|start|stop|new|reset)"
        rf"{_S}(?:[a-z]{{1,12}}{_S}){{0,3}}?"
        r"(?:instructions?|prompts?|system|context|input|conversation|rules?)\b",
        _FLAGS,
    ),
    InjectionPattern.ROLE_CONFUSION: re.compile(
        rf"\byour{_S}(?:new|real|true|actual){_S}"
        rf"(?:role|task|job|identity|persona|purpose|instructions?){_S}(?:is|are)\b"
        rf"|\bfrom{_S}now{_S}on,?{_S}you{_S}(?:are|will{_S}be|act{_S}as|must{_S}act)\b"
        rf"|\byou{_S}are{_S}no{_S}longer{_S}(?:an?|the|bound)\b|\bforget{_S}(?:that{_S})?you{_S}are\b",
        _FLAGS,
    ),
}
_HIDDEN = [re.compile(pattern.pattern.replace(r"\b", ""), _FLAGS) for pattern in _WORDS.values()]
"""The same where what stands before and behind it was never a text: in what was decoded."""
_GAP = re.compile(rf"[^\S\n]*\n\s*|[^\S\n]{{2,}}|([_,;*\"~|/\\`{LONG_DASH}-])\1{{4,}}")
"""Rows of spaces, of lines, and of one mark."""

ALL_PATTERNS = tuple(InjectionPattern)
_SEVERITY: dict[InjectionPattern, Severity] = {
    InjectionPattern.INSTRUCTION_OVERRIDE: Severity.HIGH,
    InjectionPattern.JAILBREAK_PERSONA: Severity.HIGH,
    InjectionPattern.SYSTEM_INJECTION: Severity.CRITICAL,
    InjectionPattern.ENCODED_INJECTION: Severity.MEDIUM,
    InjectionPattern.DELIMITER_INJECTION: Severity.HIGH,
    InjectionPattern.ROLE_CONFUSION: Severity.MEDIUM,
}


class InjectionFilter:
    """Finds attempts to have a text taken for instructions. It changes nothing: what it finds may not pass.

    Args:
        patterns: what is looked for; without it, all of `InjectionPattern`.

    Raises:
        UserError: a pattern that is not known.
    """

    name = "injection"

    def __init__(self, patterns: Iterable[InjectionPattern | str] | None = None) -> None:
        try:
            given = ALL_PATTERNS if patterns is None else tuple([InjectionPattern(one) for one in patterns])
        except (ValueError, TypeError):
            raise UserError(
                f"patterns= takes some of {', '.join(InjectionPattern)}, not {patterns!r}"
            ) from None
        if not given:
            raise UserError(f"patterns= takes at least one of {', '.join(InjectionPattern)}")
        self.patterns = given

    def screen(self, text: str) -> Screened:
        """The text as it is, and what was found."""
        found = find_injections(text, self.patterns)
        violations = [Violation(self.name, one.value, _SEVERITY[one], count) for one, count in found.items()]
        return Screened(text, tuple(violations))


def find_injections(
    text: str, patterns: Iterable[InjectionPattern] = ALL_PATTERNS
) -> dict[InjectionPattern, int]:
    """The patterns that stand in a text, and how often each does."""
    wanted = tuple(patterns)
    looks = plain(text)
    views = [_closed_up(looks)]
    if looks is not text and (apart := plain_apart(text)) != looks:
        views.append(_closed_up(apart))
    found: dict[InjectionPattern, int] = {}
    for pattern in wanted:
        if pattern is InjectionPattern.ENCODED_INJECTION:
            pieces = (*decoded(looks), in_tags(text))
            count = len({said for piece in pieces if (said := _said_in(_closed_up(plain(piece))))})
        else:
            count = max([sum(1 for _ in _WORDS[pattern].finditer(view)) for view in views])
        if count:
            found[pattern] = count
    return found


def _closed_up(text: str) -> str:
    """The text with no more than one space, one line or four marks in a row."""
    return _GAP.sub(lambda gap: "\n" if "\n" in gap[0] else gap[0][:4] if gap[1] else " ", text)


def _said_in(text: str) -> str:
    """The first that is looked for in what was decoded; empty where there is nothing."""
    matches = (pattern.search(text) for pattern in _HIDDEN)
    return next((match[0].lower() for match in matches if match is not None), "")
