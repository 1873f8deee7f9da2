"""A recorded policy is whole: a fork under it has all that the agent was told and the loop recorded of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, Limits
from flyball.core.messages import user
from flyball.core.settings import ModelSettings
from flyball.core.spec import LoopSpec
from flyball.core.tools import ToolChoice
from flyball.orchestrate.config import AgentConfig, bind
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.recorded import load
from flyball.orchestrate.requesting import recorded_policy
from flyball.orchestrate.system import System
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import City, add
from tests.orchestrate.test_output_approval import waits

CODE = frozenset(
    {"model", "validators", "tool_filters", "approval", "deliveries", "editor", "features", "description"}
)
"""Options that are code, or that no loop records: whoever forks a loop brings these."""
POLICY: dict[str, dict[str, Any]] = {
    "output": {"output": {"type": "object", "title": "City", "properties": {"name": {"type": "string"}}}},
    "tools": {"tools": [add]},
    "instructions": {"instructions": "Be brief."},
    "name": {"name": "clerk"},
    "settings": {"settings": ModelSettings(temperature=0.5)},
    "limits": {"limits": Limits(max_iterations=3)},
    "retries": {"retries": 5},
    "tool_choice": {"tools": [add], "tool_choice": ToolChoice("required")},
    "end_strategy": {"end_strategy": "exhaustive"},
    "output_mode": {"output": City, "output_mode": "prompted"},
    "grammar": {"grammar": 'root ::= "yes" | "no"'},
    "output_approval": {"output_approval": True},
    "role": {"role": "critic"},
    "asks_again": {"grammar": 'root ::= "yes" | "no"', "asks_again": False},
}
"""An agent that has each option that stands in its spec, with what else it needs for that."""


def spec_of(config: AgentConfig) -> LoopSpec:
    return bind(config).spec


def test_each_option_is_code_or_policy() -> None:
    """A new one must be put in one of the two: forgotten, a fork would go without it."""
    assert set(POLICY) | CODE == set(AgentConfig.__struct_fields__)


@pytest.mark.parametrize("option", POLICY)
def test_what_a_loop_records_of_an_option_a_fork_of_it_has(option: str) -> None:
    engine = NeverAsked()
    told = AgentConfig.of(model=engine, **POLICY[option])
    recorded = spec_of(told)
    without = {name: value for name, value in POLICY[option].items() if name != option}
    assert recorded != spec_of(AgentConfig.of(model=engine, **without)), "it does not stand in the spec"
    # Who forks it has the code, and else an agent that was told nothing.
    here = AgentConfig.of(model=engine, tools=told.tools)
    if option == "output_mode":
        here = here.changed(output=City)
    assert spec_of(here.changed(**recorded_policy(recorded, here))) == recorded


async def test_a_fork_of_a_loop_whose_answer_waits_has_its_answers_wait() -> None:
    """Also where the agent at hand was not told so."""
    journal = MemoryJournal()
    held = System(Agent(Script("one"), name="held", output_approval=True), journal=journal)
    plain = System(Agent(Script("two"), name="held"), journal=journal)
    request = SystemRequest(messages=(user("go"),))
    task = asyncio.create_task(held.handle(request, loop_id="one"))
    await journal.wait("one", 0)
    await waits(journal, "one")
    fork = await plain.fork("one", 0)
    _, state = await load(journal, fork)
    assert state.spec.output.approval
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
