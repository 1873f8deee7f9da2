"""The course of a loop: what happened, step by step, with when, how long, and what came of it.

    step                CourseStep: one step, and the kinds that there are
    loops               the steps of an agent's loop; `not_run`, its calls that were answered and not run
    flows               the steps of a flow

Guarantees: made from the events alone; never raises on a journal. Steps stand in the order in which they
began; of those at one time, what lasts comes first and the end last. A step that began before another may
have ended after it. Every call that was begun is there once, also one that is under way (`took` is None) and
one that was cut off (`ended` is False); so is every tool call that was answered without being run. Texts are
cut: they are for a look, the explanation has them in full.
"""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.events import Event
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.projections.course.flows import flow_course
from flyball.orchestrate.projections.course.loops import loop_course
from flyball.orchestrate.projections.course.step import CourseStep, StepKind

__all__ = ["CourseStep", "StepKind", "course"]


def course(events: Iterable[Event]) -> tuple[CourseStep, ...]:
    """The steps of a loop, an agent's or a flow's.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    journal = tuple(events)
    return flow_course(journal) if is_flow(journal) else loop_course(journal)
