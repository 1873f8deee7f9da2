"""From a text to code: what is not known here is refused, and what takes time is made to count it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from jinja2 import Template, TemplateSyntaxError, meta, nodes
from jinja2.visitor import NodeTransformer
from msgspec import Struct

from flyball.core.errors import TemplateMalformed
from flyball.prompt.jinja.sandbox import COUNTED, JOINED, WEIGHED, PromptEnvironment
from flyball.prompt.scanning import Place

LONGEST = 100_000
"""How many characters a template may have."""
_PLAIN: tuple[type[nodes.Node], ...] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign, nodes.With),
    *(nodes.Const, nodes.Name, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Getattr, nodes.Getitem),
    *(nodes.Call, nodes.Concat, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg),
    *(nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Keyword),
    *(nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair),
)
_WORDS: dict[type[nodes.Node], str] = {
    nodes.Macro: "macros",
    nodes.CallBlock: "call blocks",
    nodes.FilterBlock: "filter blocks",
    nodes.AssignBlock: "blocks that are set",
    nodes.Include: "includes",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "extends",
    nodes.Block: "blocks",
    nodes.Slice: "slices",
    nodes.Pow: "powers",
}


class Compiled(Struct, frozen=True):
    """A template that was read: its code, and the names that it looks up."""

    code: Any
    names: tuple[str, ...]


@cache
def environment() -> PromptEnvironment:
    """The one environment of all templates: nothing changes it."""
    return PromptEnvironment()


def read(place: Place) -> Compiled:
    """The code of a template.

    Raises:
        TemplateMalformed: the text is none, or does what is not known here.
    """
    if len(place.text) > LONGEST:
        raise place.malformed(0, f"it has {len(place.text):,} characters, and {LONGEST:,} are allowed")
    jinja = environment()
    try:
        tree = jinja.parse(place.text)
        _check(place, tree)
        names = meta.find_undeclared_variables(tree)
        counted = _Counting().visit(tree)
        counted.set_environment(jinja)
        code = Template.from_code(jinja, jinja.compile(counted), jinja.globals)
    except TemplateSyntaxError as error:
        raise _malformed(place, error.lineno, error.message or "it is no template") from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise place.malformed(0, "it is nested too deeply") from error
    return Compiled(code, tuple(sorted(names, key=lambda name: _first_place(place.text, name))))


def _first_place(text: str, name: str) -> tuple[int, str]:
    found = re.search(rf"\b{re.escape(name)}\b", text)
    return (found.start() if found else len(text)), name


def _check(place: Place, tree: nodes.Template) -> None:
    """Refuse what is not known here."""
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) not in _PLAIN:
            what = _WORDS.get(type(node), f"{type(node).__name__.lower()}s")
            raise _malformed(place, node.lineno, f"{what} are not known: work the value out before")
        if isinstance(node, nodes.For) and node.recursive:
            raise _malformed(place, node.lineno, "loops that call themselves are not known")
        if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict):
            written = getattr(node, "ctx", "load") == "load"  # or it is what names are set by
            if written and not all(_constant(item) for item in node.iter_child_nodes()):
                raise _malformed(
                    place, node.lineno, "a list that is written out holds texts and numbers only"
                )
        if isinstance(node, nodes.Assign | nodes.For) and not isinstance(
            node.target, nodes.Name | nodes.Tuple
        ):
            raise _malformed(place, node.lineno, "only a name can be set")
        waiting += node.iter_child_nodes()


def _constant(node: nodes.Node) -> bool:
    """Whether a node stands for a text or a number: lists in lists could grow with every one that is set."""
    if isinstance(node, nodes.Neg | nodes.Pair):
        return all(_constant(inner) for inner in node.iter_child_nodes())
    return isinstance(node, nodes.Const)


def _malformed(place: Place, line: int, what: str) -> TemplateMalformed:
    """What is wrong, at the beginning of a line: that is as much as Jinja tells."""
    lines = place.text.splitlines(keepends=True)
    return place.malformed(sum(map(len, lines[: line - 1])), what)


class _Counting(NodeTransformer):
    """Puts filters around what takes time, by which it is counted."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja's form
        self.generic_visit(node)
        node.iter = _filtered(node.iter, COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), JOINED)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, WEIGHED)
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, WEIGHED)
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if node.name not in ("defined", "undefined"):  # which look at the name, and not at what it stands for
            node.node = _filtered(node.node, WEIGHED)
        return node


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(cast("nodes.Expr", node), name, [], [], None, None, lineno=node.lineno)
