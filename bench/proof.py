"""That a run really did its work, proven from its journal alone.

The events are written as bytes, read back and folded; the output, the messages and the usage are taken from
that state, without an engine, and must be those that the run gave. A run that cannot show this is void, and
so is whatever time it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench.asking import Void
from flyball import FlyballError, RunResult
from flyball.core.codec import decode_event, encode_event
from flyball.core.events import Event
from flyball.orchestrate.machine import fold
from flyball.orchestrate.output import OutputReader
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.state import State


class Expected(NamedTuple):
    """What a run of a workload must have left behind.

    `events` counts those that must be there; a journal may hold others besides.
    """

    output: object
    events: Mapping[str, int]
    returns: tuple[object, ...] = ()
    kind: Any = str


async def prove(result: RunResult[Any] | None, expected: Expected) -> State:
    """Prove the run that gave a result.

    Raises:
        Void: it cannot be proven.
    """
    if result is None:
        raise Void("no run has ended")
    return prove_journal(await result.events(), result, expected)


def prove_journal(recorded: Sequence[Event], result: RunResult[Any], expected: Expected) -> State:
    """Prove a run from its recorded events; gives the state that they fold to.

    Raises:
        Void: an event is missing, or they tell something else than the result.
    """
    try:
        state = fold([decode_event(encode_event(event)) for event in recorded])
    except FlyballError as error:
        raise Void(f"the journal cannot be folded: {error}") from error
    counts = Counter(type(event).__name__ for event in recorded)
    for name, count in expected.events.items():
        if counts[name] != count:
            raise Void(f"the journal holds {counts[name]} {name} events, not {count}")
    output = OutputReader(expected.kind, state.spec.output).of(state)
    _same("output in the journal", output, expected.output)
    _same("output of the run", result.output, expected.output)
    _same("history", tuple(state.history), result.messages)
    _same("usage", state.usage, result.usage)
    _same("outcome", state.outcome, result.outcome)
    results = [part for message in state.history for part in message.tool_results]
    returns = tuple([part.content for part in results if part.call_id not in _output_calls(state)])
    _same("tool results", returns, expected.returns)
    _same("number of model calls", state.usage.requests, expected.events.get("ModelAnswered", 0))
    _same("number of tool calls", state.usage.tool_calls, len(expected.returns))
    return state


def prove_same(streamed: Sequence[Event], plain: Sequence[Event]) -> None:
    """Prove that a streamed run left the journal of a plain one, in normal form.

    Raises:
        Void: they differ.
    """
    _same("number of events of the streamed run", len(streamed), len(plain))
    for one, other in zip(normal_form(streamed), normal_form(plain), strict=True):
        _same("event of the streamed run", one, other)


def _output_calls(state: State) -> set[str]:
    """The ids of the calls that carry an output: nothing ran for them."""
    names = {definition.name for definition in state.spec.output.tools}
    return {call.id for message in state.history for call in message.tool_calls if call.name in names}


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Void(f"the {what} is {found!r:.200}, not {wanted!r:.200}")
