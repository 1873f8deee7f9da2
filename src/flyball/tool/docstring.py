"""Reading a docstring: what the function does, and what each parameter means.

Google, NumPy and Sphinx styles are understood, also mixed. The description is the docstring without its
parameters, which have their own place in the schema, and without what it raises, which concerns only the code
that calls it. All else stays as it was written: whoever wrote it wanted it read. No text makes it fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from textwrap import dedent

from msgspec import Struct

_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args", "keyword arguments"})
_DROPPED = frozenset({"raises", "raise", "except", "exceptions"})

_GOOGLE_HEADER = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?$")
_NUMPY_RULE = re.compile(r"-{3,}\s*$")
_NUMPY_ENTRY = re.compile(r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r":(\w+)(?:\s+([^:]+?))?\s*:(?:\s+(.*))?$")
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"})
_SPHINX_RETURNS = frozenset({"return", "returns"})
_SPHINX_DROPPED = frozenset({"type", "rtype", "raise", "raises", "except", "exception"})


class Docstring(Struct, frozen=True):
    """A docstring in two: the description, and the parameters' descriptions by name."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse(text: str | None) -> Docstring:
    """Read a docstring; none gives an empty one."""
    if not text:
        return Docstring()
    lines = cleandoc(text).splitlines()
    prose: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        if (title := _numpy_title(lines, at)) is not None and title in _PARAMETERS | _DROPPED:
            end = _numpy_end(lines, at + 2)
            if title in _PARAMETERS:
                found.update(_numpy_entries(lines[at + 2 : end]))
        elif (title := _google_title(lines, at)) is not None:
            end = _indented_end(lines, at + 1)
            if title in _PARAMETERS:
                found.update(_google_entries(lines[at + 1 : end]))
        elif field := _SPHINX_FIELD.match(lines[at]):
            end = _indented_end(lines, at + 1)
            kind, what, first = field.groups()
            body = _joined([first or "", *lines[at + 1 : end]])
            if kind in _SPHINX_PARAMETERS and what:
                found[what.split()[-1].lstrip("*")] = body
            elif kind in _SPHINX_RETURNS:
                prose.append(f"Returns: {body}")
            elif kind not in _SPHINX_DROPPED:
                prose.extend(lines[at:end])
        else:
            end = at + 1
            prose.append(lines[at])
        at = end
    description = re.sub(r"\n{3,}", "\n\n", "\n".join([line.rstrip() for line in prose])).strip()
    return Docstring(description, {name: body for name, body in found.items() if body})


def _google_title(lines: list[str], at: int) -> str | None:
    """The section that begins here, if it is one that is taken out of the prose."""
    header = _GOOGLE_HEADER.match(lines[at])
    if header is None or header[1].lower() not in _PARAMETERS | _DROPPED:
        return None
    return header[1].lower() if _indented_end(lines, at + 1) > at + 1 else None


def _google_entries(block: list[str]) -> Iterator[tuple[str, str]]:
    name: str | None = None
    body: list[str] = []
    for line in dedent("\n".join(block)).splitlines():
        if entry := _GOOGLE_ENTRY.match(line):
            if name is not None:
                yield name, _joined(body)
            name, body = entry[1], [entry[2] or ""]
        else:
            body.append(line)
    if name is not None:
        yield name, _joined(body)


def _numpy_title(lines: list[str], at: int) -> str | None:
    """The underlined title that begins here, whatever it says."""
    if at + 1 < len(lines) and lines[at][:1].isalpha() and _NUMPY_RULE.match(lines[at + 1]):
        return lines[at].strip().lower()
    return None


def _numpy_end(lines: list[str], at: int) -> int:
    """Where an underlined section ends: at the next title, or at text that is no entry."""
    while at < len(lines) and _numpy_title(lines, at) is None:
        line = lines[at]
        if line and not line[0].isspace() and not _NUMPY_ENTRY.match(line):
            break
        at += 1
    return at


def _numpy_entries(block: list[str]) -> Iterator[tuple[str, str]]:
    names: list[str] = []
    body: list[str] = []
    for line in block:
        if line and not line[0].isspace():
            yield from ((name, _joined(body)) for name in names)
            names = [name.strip().lstrip("*") for name in line.partition(":")[0].split(",")]
            body = []
        else:
            body.append(line)
    yield from ((name, _joined(body)) for name in names)


def _indented_end(lines: list[str], at: int) -> int:
    """Where the indented block that begins here ends; blank lines at its end are not part of it."""
    end = at
    while at < len(lines) and (not lines[at].strip() or lines[at][0].isspace()):
        at += 1
        if lines[at - 1].strip():
            end = at
    return end


def _joined(lines: Iterable[str]) -> str:
    """Lines as running text: broken lines are joined, paragraphs stay apart."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line.strip())
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join([" ".join(paragraph) for paragraph in paragraphs if paragraph])
