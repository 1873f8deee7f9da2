"""The rule by which half of a set is held, so that nobody's taste decides what is easy to see.

Tasks of one kind and one level form a group. Groups are taken by kind, then by level; in each, tasks
alternate between open and held, in the file's order. A group begins on the side that is behind in its kind
so far; where neither is, on the side that is behind in its level; where neither is, with an open one.
So both halves have the same number of tasks, of each kind and of each level, give or take one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.control.tasks import Task


def held_by_rule(tasks: Sequence[Task]) -> list[bool]:
    """For each task of a set, whether it is to be held."""
    groups: dict[tuple[str, int], list[int]] = {}
    for at, task in enumerate(tasks):
        groups.setdefault((task.kind, task.level), []).append(at)
    held = [False] * len(tasks)
    # By how many open ones are more than held ones.
    kinds: Counter[str] = Counter()
    levels: Counter[int] = Counter()
    for (kind, level), members in sorted(groups.items()):
        begins_held = (kinds[kind] or levels[level]) > 0
        for number, at in enumerate(members):
            held[at] = begins_held ^ (number % 2 == 1)
            kinds[kind] += -1 if held[at] else 1
            levels[level] += -1 if held[at] else 1
    return held
