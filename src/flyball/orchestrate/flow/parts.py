"""What a driver knows of a flow's steps: how they are written down, found by their paths, run, and read."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Generic, TypeVar

from msgspec import Struct

from flyball.core.errors import (
    FlyballError,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.core.flow import (
    COMPOSED,
    CONDITIONAL,
    PARALLEL,
    PIPELINE,
    PLANNED,
    REDUNDANT,
    UNTIL,
    FlowNode,
    inner_path,
    parent_path,
)
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import Doing
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.flow_state import FlowState

T_co = TypeVar("T_co", covariant=True)
ANYTHING = Values()


class Done(Struct, frozen=True):
    """What a leaf gave, and the loop that it was run as, if it was one."""

    output: Any
    loop_id: str = ""


class StepOutcome(Struct, Generic[T_co], frozen=True):
    """How one of several redundant steps ended: with an output, or with an error."""

    output: T_co | None = None
    error: FlyballError | None = None


class Part:
    """A step as a driver knows it. What is made of others has them in `inner`; a leaf can be run.

    A leaf says what it takes and gives.
    """

    kind: str
    name: str

    @property
    def inner(self) -> tuple[Part, ...]:
        """The steps that it is made of."""
        return ()

    @property
    def until(self) -> Part | None:
        """The step that says whether there is enough, where it has one."""
        return None

    def runs(self) -> Agent[Any, Any] | None:
        """The agent that it runs, if it does."""
        return None

    def asks(self) -> Agent[Any, Any] | None:
        """The agent that may come to wait for somebody: which it runs, or is known to have run."""
        return self.runs()

    @property
    def takes(self) -> Any:
        """The type of what it takes; Any where it does not say."""
        return Any

    @property
    def gives(self) -> Values:
        """What it gives."""
        return ANYTHING

    def node(self) -> FlowNode:
        """How it is written down."""
        until = None if self.until is None else self.until.node()
        return FlowNode(self.kind, self.name, tuple([part.node() for part in self.inner]), until)

    def grown(self, node: FlowNode) -> Part:
        """This part with what was planned in it, as the flow's structure has it by now."""
        inner = tuple([part.grown(step) for part, step in zip(self.inner, node.steps, strict=True)])
        if all(part is before for part, before in zip(inner, self.inner, strict=True)):
            return self
        grown = copy(self)
        object.__setattr__(grown, "steps", inner)  # what all that is made of others has, and is frozen
        return grown

    def worth_another_try(self, error: Exception) -> bool:
        """Whether a leaf that failed so should be tried again, where its node says that it is judged."""
        return False

    async def perform(self, doing: Doing, value: Any) -> Done:
        """Run a leaf."""
        raise NotImplementedError(f"a {self.kind} is not run itself, but what it is made of")


def part_at(part: Part, path: str) -> Part:
    """The part of a flow that stands at a path."""
    for name in path.split(".") if path else ():
        inner = part.until if name == UNTIL else part.inner[int(name)]
        assert inner is not None, "a machine owes only what is there"
        part = inner
    return part


def leaves(part: Part) -> Iterator[Part]:
    """All leaves of a flow."""
    inner = part.inner if part.until is None else (*part.inner, part.until)
    if not inner and part.kind not in COMPOSED:
        yield part
    for one in inner:
        yield from leaves(one)


def first_takes(part: Part) -> Any:
    """The type of what a flow takes, as far as the steps that are given its input say."""
    if not part.inner:
        return Any if part.node().given is not None else part.takes
    for one in part.inner[:1] if part.kind in (PIPELINE, PLANNED) else part.inner:
        if (takes := first_takes(one)) is not Any:
            return takes
    return Any


# Reading what is recorded


def read_output(part: Part, path: str, output: Any, state: FlowState) -> Any:
    """What a part has given, from what is recorded of it."""
    inner = part.inner
    if part.kind == PIPELINE:
        if not inner:
            return output
        return read_output(inner[-1], inner_path(path, len(inner) - 1), output, state)
    if part.kind == PLANNED:
        return read_output(inner[1], inner_path(path, 1), output, state)
    if part.kind == CONDITIONAL:
        chosen = 1 if state.ended[inner_path(path, 0)].output is True else 2
        return read_output(inner[chosen], inner_path(path, chosen), output, state)
    if part.kind == PARALLEL:
        return [
            read_output(one, inner_path(path, index), output[index], state) for index, one in enumerate(inner)
        ]
    if part.kind == REDUNDANT:
        return _outcomes(part, path, output, state)
    return part.gives.decode(output, f"what {part.name!r} has given")


def _outcomes(part: Part, path: str, outcomes: list[Any], state: FlowState) -> list[Any]:
    read: list[StepOutcome[Any] | None] = []
    for index, outcome in enumerate(outcomes):
        if outcome is None:
            read.append(None)
        elif "error" in outcome:
            from msgspec import convert

            read.append(StepOutcome(error=convert(outcome["error"], SystemError).exception()))
        else:
            output = read_output(part.inner[index], inner_path(path, index), outcome["output"], state)
            read.append(StepOutcome(output))
    return read


def read_input(root: Part, path: str, given: Any, state: FlowState, flow_input: Values) -> Any:
    """What a leaf is given: as what has given it; where that does not say, as the leaf's own type.

    Raises:
        StepMismatch: it is not of the leaf's type.
    """
    part = part_at(root, path)
    if path.endswith(UNTIL):
        above = parent_path(path)
        return _outcomes(part_at(root, above), above, given, state)
    source = None if part.node().given is not None else _source(root, path)
    if source is not None:
        giver = part_at(root, source)
        if part.takes is Any or _says(giver):
            return read_output(giver, source, given, state)
    values = flow_input if part.takes is Any else Values(part.takes)
    return values.decode(given, f"what {part.name!r} is given")


def _says(part: Part) -> bool:
    """Whether it is known of what types a part's output is."""
    if part.kind == PIPELINE:
        return bool(part.inner) and _says(part.inner[-1])
    if part.kind == PLANNED:
        return len(part.inner) > 1 and _says(part.inner[1])
    if part.kind == CONDITIONAL:
        return _says(part.inner[1]) and _says(part.inner[2])
    if part.kind == PARALLEL:
        return all(_says(one) for one in part.inner)
    return part.kind == REDUNDANT or part.gives.kind is not Any


def _source(root: Part, path: str) -> str | None:
    """The path of what gives a node its input; None for the flow's own."""
    while path:
        above, _, name = path.rpartition(".")
        if part_at(root, above).kind == PIPELINE and int(name):
            return inner_path(above, int(name) - 1)
        path = above
    return None
