"""Template: a prompt with named places for values, in the manner of Go's text/template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flyball.prompt.filling import filled
from flyball.prompt.reading import read
from flyball.prompt.text_template import TextTemplate
from flyball.prompt.tree import Node, variables


class Template(TextTemplate):
    """A text with `{{.Name}}` in it, and `if`, `range` and `with`, as Go's text/template has them.

    Of what stands inside a `range` or a `with`, only what is looked up from the top (`$.Name`) is among the
    `variables`. A value that is not given is an error, and not `<no value>`.

    Args:
        text: the template.
        name: what it is called in errors.

    Raises:
        TemplateMalformed: the text is no template; with its line and column, and what to do.
    """

    __slots__ = ("_nodes",)
    _nodes: tuple[Node, ...]

    def _read(self) -> tuple[str, ...]:
        self._nodes = read(self._place)
        return variables(self._nodes)

    def _filled(self, given: Mapping[str, Any]) -> str:
        return filled(self._place, self._nodes, given)
