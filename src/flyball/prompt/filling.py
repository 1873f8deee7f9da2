"""A tree and values become text. Values are put in as they are: nothing of them is read as a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from flyball.core.errors import TemplateError, TemplateVariableMissing
from flyball.prompt.scanning import Place
from flyball.prompt.tree import If, Literal, Node, Path, Range, Value


def filled(place: Place, nodes: tuple[Node, ...], values: Mapping[str, Any]) -> str:
    """The text of a template with these values.

    Raises:
        TemplateError: a value cannot be what the template has it as.
        TemplateVariableMissing: a value lacks a field that the template wants.
    """
    text: list[str] = []
    _Filling(place, values, text).fill(nodes, values)
    return "".join(text)


class _Filling:
    """One filling of one template."""

    def __init__(self, place: Place, top: Mapping[str, Any], text: list[str]) -> None:
        self.place, self.top, self.text = place, top, text

    def fill(self, nodes: tuple[Node, ...], here: Any) -> None:
        """Add the text of some nodes, at a value."""
        for node in nodes:
            if isinstance(node, Literal):
                self.text.append(node.text)
            elif isinstance(node, Value):
                self.text.append(self._as_text(node.path, self._value(node.path, here)))
            elif isinstance(node, If):
                body = node.otherwise
                for arm in node.arms:
                    if self._holds(arm.path, self._value(arm.path, here)):
                        body = arm.body
                        break
                self.fill(body, here)
            else:
                path = node.arm.path
                value = self._value(path, here)
                if not self._holds(path, value):
                    self.fill(node.otherwise, here)
                elif isinstance(node, Range):
                    for item in self._items(path, value):
                        self.fill(node.arm.body, item)
                else:
                    self.fill(node.arm.body, value)

    def _value(self, path: Path, here: Any) -> Any:
        value = self.top if path.from_top else here
        for depth, name in enumerate(path.fields):
            if not isinstance(value, Mapping):
                before = Path(path.fields[:depth], path.at, path.from_top)
                raise self._wrong(
                    path,
                    f"{before} is a {type(value).__name__}, and only a mapping has fields such as {name!r}",
                )
            fields = cast("Mapping[str, Any]", value)
            if name not in fields:
                raise self._missing(path, name, fields)
            value = fields[name]
        return value

    def _holds(self, path: Path, value: Any) -> bool:
        """Whether a value is something: not nothing, 0, false, or empty."""
        try:
            return bool(value)
        except Exception as error:  # anybody's object
            raise self._wrong(path, f"{path} cannot say whether it is empty") from error

    def _items(self, path: Path, value: Any) -> Collection[Any]:
        kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Collection):
            raise self._wrong(path, f"{path} is a {kind.__name__}: range takes a list")
        return cast("Collection[Any]", value)

    def _as_text(self, path: Path, value: Any) -> str:
        kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            return value
        if value is None:
            return ""
        if isinstance(value, Mapping):
            known = ", ".join([f".{name}" for name in cast("Mapping[Any, Any]", value)][:20]) or "none"
            raise self._wrong(path, f"{path} has fields, and is no text itself: name one of them ({known})")
        if isinstance(value, Collection) and not isinstance(value, str):
            raise self._wrong(path, f"{path} is a {kind.__name__}, and no text: go through it by range")
        if kind.__str__ is object.__str__ and not isinstance(value, int | float):
            raise self._wrong(path, f"{path} is a {kind.__name__}, which has no text of its own: give text")
        try:
            return str(value)
        except Exception as error:  # anybody's object
            raise self._wrong(path, f"{path} is a {kind.__name__}, which could not say its text") from error

    def _wrong(self, path: Path, what: str) -> TemplateError:
        return TemplateError(f"{self.place.told(path.at)}: {what}", **self._details(path))

    def _missing(self, path: Path, name: str, fields: Mapping[str, Any]) -> TemplateVariableMissing:
        known = [str(one) for one in fields]
        return TemplateVariableMissing(
            f"{self.place.told(path.at)}: there is no {name!r} for {path}; there are: "
            f"{', '.join(known[:20]) or 'none'}",
            missing=[name],
            known=known,
            **self._details(path),
        )

    def _details(self, path: Path) -> dict[str, Any]:
        line, column = self.place.line_and_column(path.at)
        return {"template": self.place.name, "line": line, "column": column, "variable": str(path)}
