"""Names by which the steps of a plan can be told apart: a plan's own are for people, and may come twice."""

from __future__ import annotations

from flyball.core.flow import COMPOSED, CONDITIONAL, FlowNode, inner_path, node_at


def names_in(flow: FlowNode, first: str = "", unnamed: str = "") -> dict[str, str]:
    """A name for each step of a flow, by its path: its own, or if an earlier step has that, with a number.

    So of two steps `look` the second is `look (2)`. The two ways of a branch may have the same names: only
    one of them is gone. The step at the path `first` has its own name whatever the others are called, and
    the one at `unnamed` takes none away.
    """
    names = {first: node_at(flow, first).name} if first else {}
    _name(flow, "", set(names.values()), names, unnamed)
    return names


def _name(node: FlowNode, path: str, taken: set[str], names: dict[str, str], unnamed: str) -> None:
    if path in names or (path and path == unnamed):
        return
    if node.kind not in COMPOSED:
        name, number = node.name, 1
        while name in taken:
            number += 1
            name = f"{node.name} ({number})"
        names[path] = name
        taken.add(name)
        return
    before: set[str] = set()
    for index, step in enumerate(node.steps):
        if node.kind == CONDITIONAL and index == 1:
            before = set(taken)
        way = set(before) if node.kind == CONDITIONAL and index > 1 else taken
        _name(step, inner_path(path, index), way, names, unnamed)
        taken |= way
