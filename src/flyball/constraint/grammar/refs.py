"""References within a schema: what they point to, and which of them lead back to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from flyball.constraint.grammar.scope import At


class References:
    """The references of one schema document. Nothing is fetched: only `#` and `#/…` are followed."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._recursive: dict[str, bool] = {}

    def target(self, reference: str, at: At) -> Any:
        """What a reference points to.

        Raises:
            GrammarUnsupported: it leads out of the document, to an anchor, or nowhere.
        """
        if reference != "#" and not reference.startswith("#/"):
            raise at.refuse("$ref", f"{reference!r} leads out of the schema; put what it names into '$defs'")
        found = self._find(reference)
        if found is None:
            raise at.refuse("$ref", f"nothing is at {reference!r}")
        return found[0]

    def recursive(self, reference: str) -> bool:
        """Whether what it points to leads to the same reference again."""
        known = self._recursive.get(reference)
        if known is None:
            known = self._recursive[reference] = reference in self._reached(reference)
        return known

    def _reached(self, reference: str) -> set[str]:
        seen: set[str] = set()
        waiting = [reference]
        while waiting:
            found = self._find(waiting.pop())
            for further in _inside(found[0]) if found else ():
                if further not in seen:
                    seen.add(further)
                    waiting.append(further)
        return seen

    def _find(self, reference: str) -> tuple[Any] | None:
        """What is there, in a tuple; None where nothing is."""
        here: Any = self.document
        for step in _steps(reference):
            if isinstance(here, dict) and step in here:
                here = cast("dict[str, Any]", here)[step]
            elif isinstance(here, list) and step.isdecimal() and int(step) < len(cast("list[Any]", here)):
                here = cast("list[Any]", here)[int(step)]
            else:
                return None
        return (here,)


def _steps(reference: str) -> list[str]:
    from urllib.parse import unquote

    if not reference.startswith("#/"):
        return []
    return [unquote(step).replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]


def _inside(node: Any) -> Iterator[str]:
    """The references in a part of the schema. One in an example counts: it only shortens a recursion."""
    if isinstance(node, dict):
        for key, value in cast("dict[str, Any]", node).items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif key not in ("$defs", "definitions"):
                yield from _inside(value)
    elif isinstance(node, list):
        for value in cast("list[Any]", node):
            yield from _inside(value)
