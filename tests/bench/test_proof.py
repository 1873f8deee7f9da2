"""A journal that was tampered with proves nothing."""

from __future__ import annotations

from typing import Any

import pytest
from bench.asking import Void
from bench.flyball_peer import Peer
from bench.proof import Expected, prove, prove_journal, prove_same
from bench.runs import PROOFS, tool_proof
from msgspec.structs import replace

from flyball import RunResult
from flyball.core.events import Ended, Event, ModelAnswered, Started, ToolReturned, TurnSettled
from flyball.core.messages import Message, Role, Text
from flyball.core.usage import Usage

TURNS = 3
PROOF = tool_proof(TURNS)


async def run() -> tuple[list[Event], RunResult[Any]]:
    peer = Peer(TURNS)
    await peer.tools()
    assert peer.result is not None
    return await peer.result.events(), peer.result


def put(events: list[Event], number: int, **changes: Any) -> list[Event]:
    """The events, one of them changed."""
    changed = list(events)
    changed[number] = replace(changed[number], **changes)
    return changed


async def test_an_honest_journal_is_proven() -> None:
    events, result = await run()
    assert prove_journal(events, result, PROOF).history == list(result.messages)


async def test_every_event_that_is_dropped_is_noticed() -> None:
    events, result = await run()
    assert [type(event) for event in events] == [
        Started,
        *[ModelAnswered, ToolReturned] * TURNS,
        ModelAnswered,
        Ended,
    ]
    for number in range(len(events)):
        with pytest.raises(Void):
            prove_journal([*events[:number], *events[number + 1 :]], result, PROOF)


async def test_an_event_that_is_there_twice_is_noticed() -> None:
    events, result = await run()
    for number in range(len(events)):
        with pytest.raises(Void):
            prove_journal([*events[: number + 1], *events[number:]], result, PROOF)


async def test_a_changed_tool_result_is_noticed() -> None:
    events, result = await run()
    returned = events[2]
    assert isinstance(returned, ToolReturned)
    tampered = put(events, 2, result=replace(returned.result, content=99))
    with pytest.raises(Void, match="the history is"):
        prove_journal(tampered, result, PROOF)


async def test_a_changed_answer_is_noticed() -> None:
    events, result = await run()
    tampered = put(events, -2, message=Message(Role.ASSISTANT, (Text("43"),), usage=Usage(20, 5)))
    with pytest.raises(Void, match="the output in the journal is '43'"):
        prove_journal(tampered, result, PROOF)


async def test_a_changed_usage_is_noticed() -> None:
    events, result = await run()
    answered = events[-2]
    assert isinstance(answered, ModelAnswered)
    tampered = put(events, -2, message=replace(answered.message, usage=Usage(21, 5)))
    with pytest.raises(Void, match="the history is"):
        prove_journal(tampered, result, PROOF)


async def test_a_run_whose_tools_gave_something_else_is_noticed() -> None:
    events, result = await run()
    with pytest.raises(Void, match="the tool results is"):
        prove_journal(events, result, PROOF._replace(returns=(1, 2, 4)))


async def test_a_result_with_another_output_is_noticed() -> None:
    events, result = await run()
    forged: RunResult[Any] = RunResult("43", result.state, result.journal)
    with pytest.raises(Void, match="the output of the run is '43'"):
        prove_journal(events, forged, PROOF)


async def test_an_expected_event_that_is_missing_is_named() -> None:
    events, result = await run()
    expected = Expected(PROOF.output, {**PROOF.events, "TurnSettled": 1}, PROOF.returns)
    with pytest.raises(Void, match="the journal holds 0 TurnSettled events, not 1"):
        prove_journal(events, result, expected)


async def test_an_output_is_read_from_the_journal_as_its_type() -> None:
    peer = Peer(0)
    await peer.structured()
    assert peer.result is not None
    events = await peer.result.events()
    prove_journal(events, peer.result, PROOFS["W3"])
    unsettled = [event for event in events if not isinstance(event, TurnSettled)]
    with pytest.raises(Void, match="cannot be folded"):
        prove_journal(unsettled, peer.result, PROOFS["W3"])


async def test_no_run_proves_nothing() -> None:
    with pytest.raises(Void, match="no run has ended"):
        await prove(None, PROOF)


async def test_a_streamed_journal_that_differs_is_noticed() -> None:
    (one, _), (other, _) = await run(), await run()
    prove_same(one, other)
    with pytest.raises(Void, match="number of events"):
        prove_same(one[:-1], other)
    with pytest.raises(Void, match="event of the streamed run"):
        prove_same(put(one, -2, message=Message(Role.ASSISTANT, (Text("43"),))), other)
