"""TextTemplate: what all templates have in common, however they are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from flyball.core.context import RunContext
from flyball.core.errors import TemplateError, TemplateVariableMissing, UserError
from flyball.prompt.scanning import Place
from flyball.prompt.variables import values_of

_NOTHING: Mapping[str, Any] = {}


class TextTemplate(ABC):
    """A text with places for values. It is read once, when it is made, and never changes.

    As instructions of an agent it is filled when a run begins, with the values that the run's dependencies
    have (a mapping, or an object with `template_vars()`); what it became is recorded, and a replay or a
    resume fills nothing. Values are put in as text: what stands in them is never read as a template. A value
    that is not given is an error; one that may be absent is given as None or as an empty text.
    """

    __slots__ = ("_names", "_place", "_values")

    def __init__(self, text: str, name: str = "") -> None:
        if not isinstance(text, str) or not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(self).__name__
            raise UserError(f"{kind} takes a text and a name, not {text!r:.100} and {name!r:.100}")
        self._place = Place(name, text)
        self._values = _NOTHING
        self._names = self._read()

    @abstractmethod
    def _read(self) -> tuple[str, ...]:
        """Read the text, and give the names of the values that it needs."""

    @abstractmethod
    def _filled(self, given: Mapping[str, Any]) -> str:
        """The text with all values in their places; all that it needs are there."""

    @property
    def text(self) -> str:
        """The template as it was given."""
        return self._place.text

    @property
    def name(self) -> str:
        """What it is called."""
        return self._place.name

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the values that it still needs, as they were found by reading it, in their order.

        Of what stands inside a loop and the like, only what is looked up from the top counts.
        """
        return tuple([name for name in self._names if name not in self._values])

    def partial(self, values: Mapping[str, Any] = _NOTHING, /, **more: Any) -> Self:
        """Another template, with some values filled in. What it has no place for does no harm."""
        other = copy(self)
        other._values = {**self._values, **self._mapping(values), **more}
        return other

    def _mapping(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise TemplateError(
                f"{self._place.title} takes its values by name, as keywords or in a mapping, not as "
                f"{values!r:.100}",
                template=self.name,
            )
        return values

    def format(self, values: Mapping[str, Any] = _NOTHING, /, **more: Any) -> str:
        """The text with all values in their places. What is given here goes before what was filled in.

        All of `variables` must be given, also those that stand where they may not be needed: a wrong name
        shows at once, and not in the one run that comes by.

        Raises:
            TemplateVariableMissing: a value is not given; it names all of those, and what is there.
            TemplateError: a value is not what the template needs it to be.
        """
        given = {**self._values, **self._mapping(values), **more}
        if missing := [name for name in self._names if name not in given]:
            known = [str(name) for name in given]
            there = f"only {', '.join(known[:20])}" if known else "nothing"
            raise TemplateVariableMissing(
                f"{self._place.title} needs {', '.join(missing)}, and there is {there}: give a value for "
                "each, None or an empty text where there is none",
                template=self.name,
                missing=missing,
                known=known,
            )
        return self._filled(given)

    render = format
    """pagantic's name for it."""

    async def __call__(self, context: RunContext[Any]) -> str:
        """The text for a run: the open variables come from its dependencies. An agent calls this.

        Raises:
            DepsError: there are open variables, and dependencies that have none.
            TemplateError: see `format`.
        """
        if not (wanted := self.variables):
            return self.format()
        return self.format(await values_of(context.deps, f"{self._place.title} needs {', '.join(wanted)}"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextTemplate) or type(other) is not type(self):
            return False
        return (self._place, self._values) == (other._place, other._values)

    def __hash__(self) -> int:
        return hash((type(self), self._place))

    def __repr__(self) -> str:
        kind = type(self).__name__
        text = self.text if len(self.text) <= 60 else f"{self.text[:60]}…"
        return f"{kind}({text!r}, {self.name!r})" if self.name else f"{kind}({text!r})"
