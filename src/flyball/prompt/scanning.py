"""A template's text cut into what stands as it is, and actions: what stands between `{{` and `}}`.

Trim markers have done their work here, and comments are gone: `{{- ` takes the white space before it away,
` -}}` that after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from flyball.core.errors import TemplateMalformed

SPACE = " \t\r\n"
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`')
_STOP = re.compile(r'\}\}|["`]')


class Action(Struct, frozen=True):
    """What stands between the braces, without the space around it; `at` is where the braces begin."""

    source: str
    at: int


class Place(Struct, frozen=True):
    """Which template, for errors: its name and its text."""

    name: str
    text: str

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Where an offset is for a reader, both from 1."""
        return self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)

    def told(self, at: int) -> str:
        """Where something is, in words."""
        line, column = self.line_and_column(at)
        return f"{self.title}, line {line}, column {column}"

    @property
    def title(self) -> str:
        """What the template is called."""
        return f"template {self.name!r}" if self.name else "the template"

    def malformed(self, at: int, what: str) -> TemplateMalformed:
        """What is wrong with it, and where."""
        line, column = self.line_and_column(at)
        return TemplateMalformed(f"{self.told(at)}: {what}", template=self.name, line=line, column=column)


def pieces(place: Place) -> Iterator[str | Action]:
    """The pieces of a template, in order. No text is empty.

    Raises:
        TemplateMalformed: braces, a comment or a quoted text that are not closed.
    """
    text, reached, trims = place.text, 0, False
    while True:
        at = text.find("{{", reached)
        literal = text[reached:] if at < 0 else text[reached:at]
        if trims:
            literal = literal.lstrip(SPACE)
        if at < 0:
            if literal:
                yield literal
            return
        begin = at + 2
        if text.startswith("-", begin) and text[begin + 1 : begin + 2] in SPACE and begin + 1 < len(text):
            literal = literal.rstrip(SPACE)
            begin += 1
            while text[begin : begin + 1] in SPACE and begin < len(text):
                begin += 1
        if literal:
            yield literal
        if text.startswith("/*", begin):
            end = _after_comment(place, at, begin)
            source = None
        else:
            end = _end(place, at, begin)
            source = text[begin:end]
        trims = text[end - 1] == "-" and text[end - 2] in SPACE and end - 2 >= begin
        reached = end + 2
        if source is not None:
            yield Action((source[:-1] if trims else source).strip(SPACE), at)


def _end(place: Place, at: int, begin: int) -> int:
    """Where the braces close that were opened at a place; quoted text may hold anything."""
    text, reached = place.text, begin
    while (stop := _STOP.search(text, reached)) is not None:
        if stop[0] == "}}":
            return stop.start()
        quoted = _QUOTED.match(text, stop.start())
        if quoted is None:
            raise place.malformed(stop.start(), f"the quote {stop[0]} is not closed: close it")
        reached = quoted.end()
    raise place.malformed(at, 'the braces are not closed by }}: close them; for {{ as text write {{"{{"}}')


def _after_comment(place: Place, at: int, begin: int) -> int:
    """Where the braces around a comment close."""
    text = place.text
    end = text.find("*/", begin + 2)
    if end < 0:
        raise place.malformed(at, "the comment is not closed: close it by */}}")
    after = end + 2
    if text.startswith("}}", after):
        return after
    closing = len(text) - len(text[after:].lstrip(SPACE)) if text[after : after + 1] in SPACE else after
    if after < closing and text.startswith("-}}", closing):
        return closing + 1
    raise place.malformed(at, "only a comment may stand in its braces: close it by */}} or */ -}}")
