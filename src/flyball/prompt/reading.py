"""From a text to a tree. What templates do not know is refused here, when a template is made."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from flyball.prompt.scanning import Action, Place, pieces
from flyball.prompt.tree import Arm, If, Literal, Node, Path, Range, Value, With

MAX_DEPTH = 64
"""How deep blocks may stand in each other: whoever fills a template goes down the stack."""

_PATH = re.compile(r"(\$?)((?:\.[^\W\d]\w*)+|\.?)")
_BLOCK = re.compile(r"(if|range|with)\b\s*(.*)", re.DOTALL)
_ELSE = re.compile(r"else\b\s*(.*)", re.DOTALL)
_KNOWN = (
    "templates know {{.Name}}, {{if .X}}, {{range .X}}, {{with .X}}, {{else}}, {{end}} and {{/* comments */}}"
)


class _Block:
    """A block that is not closed yet, or all of the template."""

    def __init__(self, kind: str = "", at: int = 0, path: Path | None = None) -> None:
        self.kind, self.at, self.path = kind, at, path
        self.body: list[Node] = []
        self.arms: list[Arm] = []
        self.otherwise = False
        """Whether what comes now is what stands after `else`."""

    def close_arm(self) -> None:
        """What was read is the arm's; what comes is another's, or the rest."""
        assert self.path is not None
        self.arms.append(Arm(self.path, tuple(self.body)))
        self.body = []

    def closed(self) -> Node:
        """The block as a node."""
        rest: tuple[Node, ...] = ()
        if self.otherwise:
            rest = tuple(self.body)
        else:
            self.close_arm()
        if self.kind == "if":
            return If(tuple(self.arms), rest)
        return (Range if self.kind == "range" else With)(self.arms[0], rest)


def read(place: Place) -> tuple[Node, ...]:
    """The tree of a template.

    Raises:
        TemplateMalformed: the text is none.
    """
    top = _Block()
    open_blocks = [top]
    for piece in pieces(place):
        if isinstance(piece, str):
            open_blocks[-1].body.append(Literal(piece))
        else:
            _take(place, piece, open_blocks)
    if len(open_blocks) > 1:
        block = open_blocks[-1]
        raise place.malformed(block.at, f"this {{{{{block.kind}}}}} is not closed: close it by {{{{end}}}}")
    return tuple(top.body)


def _take(place: Place, action: Action, open_blocks: list[_Block]) -> None:
    """Take an action into the block that it stands in."""
    source, block = action.source, open_blocks[-1]
    if source == "end":
        if len(open_blocks) == 1:
            raise place.malformed(action.at, "there is nothing open that {{end}} could close: take it out")
        open_blocks.pop()
        open_blocks[-1].body.append(block.closed())
    elif (found := _ELSE.fullmatch(source)) is not None:
        _otherwise(place, action, block, found[1])
    elif (found := _BLOCK.fullmatch(source)) is not None:
        if len(open_blocks) > MAX_DEPTH:
            raise place.malformed(action.at, f"more than {MAX_DEPTH} blocks stand in each other: use fewer")
        open_blocks.append(_Block(found[1], action.at, _path(place, action, found[2])))
    elif source[:1] in ('"', "`"):
        block.body.append(Literal(_quoted(place, action)))
    else:
        block.body.append(Value(_path(place, action, source)))


def _otherwise(place: Place, action: Action, block: _Block, rest: str) -> None:
    """Take an `else`, or an `else if`."""
    if not block.kind:
        raise place.malformed(action.at, "there is nothing open that {{else}} could belong to: take it out")
    if block.otherwise:
        raise place.malformed(
            action.at, f"this {{{{{block.kind}}}}} has an {{{{else}}}} already: take one out"
        )
    block.close_arm()
    if not rest:
        block.otherwise = True
        return
    found = _BLOCK.fullmatch(rest)
    if found is None or found[1] != "if" or block.kind != "if":
        raise place.malformed(
            action.at,
            f"{_shown(action)} is not known: write {{{{else}}}}, or in an if {{{{else if .X}}}}",
        )
    block.path = _path(place, action, found[2])


def _path(place: Place, action: Action, source: str) -> Path:
    found = _PATH.fullmatch(source)
    if found is None or not found[0] or found[0] == "$.":
        _refuse(place, action, source)
    fields = tuple(found[2].split(".")[1:]) if found[2] != "." else ()
    return Path(fields, action.at, bool(found[1]))


def _quoted(place: Place, action: Action) -> str:
    """A text in quotes, which is how braces are written that are no action."""
    source = action.source
    if source[0] == "`" and source.find("`", 1) == len(source) - 1:
        return source[1:-1]
    try:
        text = json.loads(source)
    except ValueError:
        _refuse(place, action, source)
    assert isinstance(text, str)
    return text


def _refuse(place: Place, action: Action, source: str) -> NoReturn:
    if not source:
        what = "a value is missing, such as .Name"
    elif re.search(r"[\s|()]", source):
        what = "functions and pipelines are not known: work the value out before, and give it under a name"
    elif source.startswith("$"):
        what = "variables are not known, but for $, which is the top: name a value, such as $.Name"
    elif re.fullmatch(r"[^\W\d]\w*", source):
        what = f"{source!r} is not known: for a value write {{{{.{source}}}}}"
    else:
        what = "that is no value"
    raise place.malformed(action.at, f"{_shown(action)}: {what}; {_KNOWN}")


def _shown(action: Action) -> str:
    source = action.source if len(action.source) <= 60 else f"{action.source[:60]}…"
    return f"{{{{{source}}}}}"
