"""Moderation: text that says what should not be said, by category: harmful, illegal, hate and the like.

It is found by its wording, or by a model that you bring. Wordings are evaded by whoever words it otherwise,
in another language or with a letter changed, and they stand in harmless texts too (a report of a crime): a
sieve, and no judgement.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any, TypeAlias, cast

from flyball.core.errors import RuleFailed, UserError
from flyball.core.violation import Severity
from flyball.validate.filters.categories import CATEGORIES, ModerationCategory
from flyball.validate.filters.plain import words
from flyball.validate.filters.violation import Screened, Violation

Judge: TypeAlias = Callable[[str], Awaitable[Mapping[str, float]]]
"""Says of a text how sure it is of each category, from 0 to 1."""
_Phrase: TypeAlias = tuple[tuple[str, ...], str, float]
_REMEMBERED = 512


class ModerationFilter:
    """Finds text of some categories. It changes nothing; from `block_threshold` on it may not pass.

    Phrases add up: two that make it sure by 0.5 make it sure by 0.75. A judge is asked about each text once,
    for as long as its answer is among the last 512, and the surer of both counts; what it names beside the
    filter's categories counts as well. One that fails ends the run: what was not looked at does not pass.

    Args:
        categories: names of `CATEGORIES`, or objects of your own; without it, all of `CATEGORIES`.
        block_threshold: how sure it must be that a text may not pass.
        note_threshold: how sure it must be that it is noted.
        judge: an async function from a text to how sure it is of which category, such as a model's.

    Raises:
        UserError: a category that is not known, or a threshold that is none.
    """

    name = "moderation"

    def __init__(
        self,
        categories: Iterable[ModerationCategory | str] | None = None,
        *,
        block_threshold: float = 0.9,
        note_threshold: float = 0.5,
        judge: Judge | None = None,
    ) -> None:
        self.categories = _known(categories)
        if not 0 < note_threshold <= block_threshold <= 1:
            raise UserError(
                "thresholds are 0 < note_threshold <= block_threshold <= 1, "
                f"not {note_threshold!r} and {block_threshold!r}"
            )
        if judge is not None and not callable(judge):
            raise UserError(f"judge= takes an async function of a text, not {judge!r}")
        self.block_threshold = block_threshold
        self.note_threshold = note_threshold
        self.judge = judge
        self._phrases = _by_first_word(self.categories.values())
        self._judged: OrderedDict[bytes, dict[str, float]] = OrderedDict()

    def screen(self, text: str) -> Screened:
        """The text as it is, and what its wording says."""
        return self._screened(text, self.scores(text))

    async def judged(self, text: str) -> Screened:
        """The text as it is, and what its wording and the judge say.

        Raises:
            RuleFailed: the judge gave no numbers.
        """
        scores = self.scores(text)
        if self.judge is not None and text.strip():
            for name, sure in (await self._ask(self.judge, text)).items():
                known, count = scores.get(name, (0.0, 1))
                scores[name] = max(known, sure), count
        return self._screened(text, scores)

    def scores(self, text: str) -> dict[str, tuple[float, int]]:
        """How sure the wording of a text makes which categories, and how often it says so."""
        heard = words(text)
        said: dict[tuple[str, tuple[str, ...]], float] = {}
        counts: dict[str, int] = {}
        for at, word in enumerate(heard):
            for phrase, name, sure in self._phrases.get(word, ()):
                if heard[at : at + len(phrase)] == phrase:
                    said[name, phrase] = sure
                    counts[name] = counts.get(name, 0) + 1
        doubts: dict[str, float] = {}
        for (name, _), sure in said.items():
            doubts[name] = doubts.get(name, 1.0) * (1.0 - sure)
        return {name: (1.0 - doubt, counts[name]) for name, doubt in doubts.items()}

    async def _ask(self, judge: Judge, text: str) -> dict[str, float]:
        key = sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._judged.get(key)
        if known is None:
            known = self._judged[key] = _numbers(await judge(text))
            if len(self._judged) > _REMEMBERED:
                self._judged.popitem(last=False)
        self._judged.move_to_end(key)
        return known

    def _screened(self, text: str, scores: Mapping[str, tuple[float, int]]) -> Screened:
        found: list[Violation] = []
        for name, (sure, count) in scores.items():
            if sure >= self.note_threshold:
                category = self.categories.get(name)
                severity = Severity.HIGH if category is None else category.severity
                found.append(Violation(self.name, name, severity, count, sure >= self.block_threshold))
        return Screened(text, tuple(found))


def _known(given: Iterable[ModerationCategory | str] | None) -> dict[str, ModerationCategory]:
    if given is None:
        return dict(CATEGORIES)
    try:
        found = [
            one if isinstance(one, ModerationCategory) else CATEGORIES[one]
            for one in ([given] if isinstance(given, str | ModerationCategory) else given)
        ]
    except (KeyError, TypeError):
        raise UserError(
            f"categories= takes some of {', '.join(CATEGORIES)}, or ModerationCategory objects, not {given!r}"
        ) from None
    if not found:
        raise UserError(f"categories= takes at least one of {', '.join(CATEGORIES)}, or a ModerationCategory")
    return {one.name: one for one in found}


def _by_first_word(categories: Iterable[ModerationCategory]) -> dict[str, list[_Phrase]]:
    found: dict[str, dict[tuple[str, tuple[str, ...]], float]] = {}
    for category in categories:
        for phrase, sure in category.phrases.items():
            said = words(phrase)
            alike = found.setdefault(said[0], {})
            alike[category.name, said] = max(sure, alike.get((category.name, said), 0.0))
    return {
        first: [(said, name, sure) for (name, said), sure in alike.items()] for first, alike in found.items()
    }


def _numbers(given: Any) -> dict[str, float]:
    """What a judge said.

    Raises:
        RuleFailed: it is not how sure it is of which category.
    """
    said: dict[Any, Any] = (
        {**cast("Mapping[Any, Any]", given)} if isinstance(given, Mapping) else {None: None}
    )
    if not all(
        type(key) is str and type(value) in (int, float) and isfinite(value) for key, value in said.items()
    ):
        raise RuleFailed(
            "the judge of the moderation filter is to give finite numbers by category", retryable=False
        )
    return said
