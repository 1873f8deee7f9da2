"""RunContext: what a tool may know of its run."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
import pytest

from flyball.core.context import RunContext, RunFacts
from flyball.core.correlation import Correlation
from flyball.core.errors import DepsError, UserError
from flyball.core.messages import user
from flyball.core.usage import RunUsage

T = TypeVar("T")

FACTS = RunFacts(
    loop_id="l1",
    turn=3,
    prompt="hi",
    usage=RunUsage(requests=2),
    tool_name="search",
    tool_call_id="c1",
    idempotency_key="k",
    retry=1,
    max_retries=2,
    metadata={"tenant": "t"},
    correlation=Correlation(loop_id="l1"),
)


def test_the_facts_are_told() -> None:
    context = RunContext("deps", FACTS)
    assert (context.run_id, context.run_step, context.prompt) == ("l1", 3, "hi")
    assert (context.tool_name, context.tool_call_id, context.idempotency_key) == ("search", "c1", "k")
    assert (context.retry, context.max_retries, context.usage.requests) == (1, 2, 2)
    assert context.metadata == {"tenant": "t"}
    assert RunContext(None, RunFacts("l")).metadata == {}
    assert FACTS.correlation.run_id == "l1"


def test_the_facts_travel() -> None:
    assert msgspec.json.decode(msgspec.json.encode(FACTS), type=RunFacts) == FACTS


def test_dependencies_of_the_right_type() -> None:
    context = RunContext({"db": 1}, FACTS)
    assert context.deps == {"db": 1}
    assert context.get_deps(dict) == {"db": 1}
    assert context.try_deps(list) is None
    with pytest.raises(DepsError, match="should be a list, but they are a dict"):
        context.get_deps(list)


class Box(Generic[T]):
    """Holds something."""


def test_dependencies_of_a_generic_type() -> None:
    context = RunContext({"db": 1}, FACTS)
    assert context.get_deps(dict[str, int]) == {"db": 1}
    assert context.try_deps(list[int]) is None
    with pytest.raises(DepsError, match="should be a Box, but they are a dict"):
        context.get_deps(Box[int])
    box = Box[int]()
    assert RunContext(box, FACTS).get_deps(Box[int]) is box


def test_no_dependencies() -> None:
    context = RunContext(None, FACTS)
    assert context.try_deps(dict) is None
    with pytest.raises(DepsError, match="none were given"):
        context.get_deps(dict)


def test_the_history_is_there_where_it_was_asked_for() -> None:
    facts = msgspec.structs.replace(FACTS, history=(user("hi"),))
    assert RunContext(None, facts).messages == (user("hi"),)
    with pytest.raises(UserError, match=r"'search' reads ctx\.messages"):
        _ = RunContext(None, FACTS).messages
    nowhere = RunContext(None, RunFacts("x"))
    with pytest.raises(UserError, match="it is of no run"):
        nowhere.snapshot()


def test_outside_a_run_nobody_could_ask_to_detach() -> None:
    with pytest.raises(UserError, match="nobody could ask"):
        _ = RunContext(None, FACTS).detach
