"""flyball gives the right answers on every workload, and each run can be proven from its journal."""

from __future__ import annotations

from typing import Any

import pytest
from bench.asking import CROWD, WORKLOADS, Void, check_answer, crowd
from bench.flyball_peer import DISTS, IMPORT, NAME, NOTES, UNLIMITED, Peer
from bench.flyball_peer import c as workloads
from bench.proof import prove
from bench.runs import check_stream, floor, prove_last, tool_proof

floor_peer: Any = floor.Peer
NAMES = sorted(WORKLOADS)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(workloads, "CONCURRENT", request.param == "W5")
    return request.param


async def test_the_answer_is_right(name: str) -> None:
    workload = WORKLOADS[name]
    peer = Peer(workload.turns)
    await check_answer(workload.ask(peer), workload, workload.seen)
    await prove_last(peer, name)


async def test_the_floor_gives_the_same_answer(name: str) -> None:
    workload = WORKLOADS[name]
    ask = workload.ask_floor or workload.ask
    await check_answer(ask(floor_peer(workload.turns)), workload, workload.seen if workload.floor_says else 0)


async def test_a_wrong_answer_is_void(name: str) -> None:
    workload = WORKLOADS[name]
    with pytest.raises(Void, match="the answer is"):
        await check_answer(
            workload.ask(Peer(workload.turns)), workload._replace(answer="another"), workload.seen
        )


async def test_a_tool_that_did_not_run_is_noticed() -> None:
    workload = WORKLOADS["W2"]
    with pytest.raises(Void, match="the tool ran 10 times, not 11"):
        await check_answer(workload.ask(Peer(10)), workload._replace(turns=11), workload.seen)


async def test_a_history_that_was_cut_is_noticed() -> None:
    workload = WORKLOADS["W6"]
    with pytest.raises(Void, match="the model was given 2002 messages, not 2003"):
        await check_answer(workload.ask(Peer(0)), workload, 2003)


async def test_the_tool_of_w2t_has_a_time_out() -> None:
    peer = Peer(1)
    await peer.tools_timeout()
    assert peer.result is not None
    assert peer.result.state.spec.tools["add"].timeout == 5.0
    await peer.tools()
    assert peer.result.state.spec.tools["add"].timeout is None


async def test_all_runs_of_w5_are_in_flight_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CONCURRENT", True)
    running = most = 0

    class Counted(Peer):
        async def tools(self) -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            answer = await super().tools()
            running -= 1
            return answer

    await crowd(Counted(1))()
    assert most == CROWD


async def test_a_streamed_run_leaves_the_journal_of_a_plain_one() -> None:
    await check_stream(Peer(0))


async def test_limits_can_be_raised_for_long_runs() -> None:
    peer = Peer(60, limits=UNLIMITED)
    assert await peer.tools() == workloads.ANSWER
    await prove(peer.result, tool_proof(60))


async def test_every_model_streams_what_it_infers() -> None:
    for agent in (peer := Peer(1))._tools, peer._report, peer._stream:  # pyright: ignore[reportPrivateUsage]
        plain = await agent.run(workloads.PROMPT)
        async with agent.run_stream(workloads.PROMPT) as stream:
            async for _ in stream.events():
                pass
        assert stream.result.output == plain.output


def test_a_peer_says_what_it_is() -> None:
    assert NAME == "flyball"
    assert DISTS == ["flyball"]
    assert IMPORT == "from flyball import Agent, tool"
    assert NOTES
