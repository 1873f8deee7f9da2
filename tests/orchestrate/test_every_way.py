"""What a table of runs comes to in the ways that no other suite goes: in a batch, paused, and forked.

(Streamed: test_streaming. Step by step: test_iter. Split apart: test_split. Cut off, resumed and replayed:
test_recorded. By a runtime: test_local, and tests/runtime/nats. They all go through the same table.)
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from flyball import FlyballError, MemoryJournal, RunResult, Signal, SignalType
from flyball.core.events import Event, ModelAnswered, SignalReceived
from flyball.core.history import check_history
from flyball.orchestrate.machine import accepts, fold
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import send_signal
from tests.orchestrate.feature_scenarios import FEATURES
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.scenarios import SCENARIOS
from tests.orchestrate.test_recorded import ending
from tests.orchestrate.tool_scenarios import AROUND_TOOLS

ASKED = tuple(scenario for scenario in SCENARIOS if scenario.prompt is not None)
"""A batch is made of prompts."""


async def ended(scenario: Scenario, running: Awaitable[RunResult[Any]]) -> RunResult[Any]:
    """How a run ends, well or badly, as the table has it."""
    result, code = await ending(running)
    assert (result.output, code) == (scenario.output, scenario.code)
    return result


async def run(scenario: Scenario, **options: Any) -> RunResult[Any]:
    return await ended(scenario, scenario.make().run(scenario.prompt, **scenario.options, **options))


@pytest.mark.parametrize("scenario", ASKED, ids=repr)
async def test_in_a_batch_each_comes_to_the_end_that_it_comes_to_alone(scenario: Scenario) -> None:
    alone = await run(scenario)
    batch = await scenario.make().run_batch([scenario.prompt] * 3, concurrency=2, **scenario.options)
    for one in batch:
        result = one.partial if isinstance(one, FlyballError) else one
        assert (getattr(one, "code", ""), result.output) == (scenario.code, scenario.output)
        assert (result.messages, result.usage) == (alone.messages, alone.usage)
        assert normal_form(await result.events()) == normal_form(await alone.events())


def without_signals(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, SignalReceived)]


@pytest.mark.parametrize("scenario", [*FEATURES, *AROUND_TOOLS], ids=repr)
async def test_wherever_it_is_paused_it_comes_to_the_same_end(scenario: Scenario) -> None:
    calm = await run(scenario)
    events = await calm.events()
    for length in range(1, len(events)):
        journal = MemoryJournal()
        await journal.append(calm.loop_id, events[:length], 0)
        if not accepts(fold(events[:length]), SignalReceived(events[length - 1].at, _PAUSE)):
            continue  # its outcome is decided
        await send_signal(journal, calm.loop_id, _PAUSE)
        await send_signal(journal, calm.loop_id, Signal(SignalType.RESUME, id="on"))
        result = await ended(scenario, scenario.make().resume(calm.loop_id, journal))
        assert result.messages == calm.messages
        assert normal_form(without_signals(await result.events())) == normal_form(events)


@pytest.mark.parametrize("scenario", [*FEATURES, *AROUND_TOOLS], ids=repr)
async def test_forked_at_any_turn_it_comes_to_the_same_end(scenario: Scenario) -> None:
    """A fork's features look at all that it sends and gets, as if it had been there from the beginning."""
    journal = MemoryJournal()
    calm = await run(scenario, journal=journal)
    turns = {event.turn for event in await calm.events() if isinstance(event, ModelAnswered)}
    for turn in range(min(turns, default=1) - 1, max(turns, default=0)):
        result = await ended(scenario, scenario.make().fork(calm.loop_id, journal, turn=turn))
        check_history(result.messages)
        assert fold(await result.events()) == result.state


_PAUSE = Signal(SignalType.PAUSE, id="off")
