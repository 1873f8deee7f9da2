"""SpecializedLoop and RedundantLoop: phases, votes, failures, and going on after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from flyball import Message, Text, tool
from flyball.core.errors import (
    EngineError,
    JournalFailure,
    NoConsensus,
    NoEngine,
    SchemaRequired,
    UserError,
)
from flyball.core.messages import Role
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import StreamHandler
from flyball.observe.event_log import InMemoryEventLog
from flyball.orchestrate.patterns import (
    MajorityVoting,
    RedundantConfig,
    RedundantLoop,
    SpecializedConfig,
    SpecializedLoop,
    UnanimityVoting,
)
from flyball.orchestrate.patterns.phases import PHASE_2
from tests.orchestrate.dying import Dying
from tests.orchestrate.models import Script
from tests.orchestrate.where import Where

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}},
    "required": ["a"],
    "additionalProperties": False,
}
X, Y = '{"a":"x"}', '{"a": "y"}'


@tool
async def look(topic: str) -> str:
    """Look something up."""
    return f"about {topic}"


def by_loop(*answers: Answer, asked: list[str] | None = None) -> FunctionEngine:
    """A model that answers by the number of the replica that asks, whoever asks first."""

    async def answer(request: Request) -> Any:
        if asked is not None:
            asked.append(request.run_id)
        replica = request.run_id.rpartition("-s0_")[2].partition("_")[0]
        given: Any = answers[int(replica)]
        if isinstance(given, Exception):
            raise given
        return given

    return FunctionEngine(answer, info=ModelInfo("votes", provider="test"))


class Noting(ScriptedEngine):
    """A scripted model that notes what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(*answers)
        self.requests: list[Request] = []

    async def infer(self, request: Request) -> Result:
        self.requests.append(request)
        return await super().infer(request)


# One answer


async def test_an_answer_that_follows_a_schema() -> None:
    engine = Noting(X)
    result = await SpecializedLoop(
        SpecializedConfig(engine=engine, schema=SCHEMA, system_prompt="Be brief.")
    ).call("Which?")
    assert (result.content, result.output, result.usage.requests) == (X, {"a": "x"}, 1)
    (request,) = engine.requests
    assert request.settings.max_tokens == 2048
    assert (request.settings.temperature, request.settings.thinking) == (0.3, False)
    assert [message.text for message in request.messages] == ["Be brief.", "Which?"]


async def test_nothing_is_kept_from_one_call_to_the_next() -> None:
    engine = Noting(X, X)
    loop = SpecializedLoop(SpecializedConfig(engine=engine, schema=SCHEMA))
    await loop.call("One?")
    await loop.call("Two?")
    assert [message.text for message in engine.requests[1].messages] == ["Two?"]


async def test_with_tools_there_are_two_phases() -> None:
    engine = Noting(call("look", {"topic": "tea"}), "It is tea.", Y)
    result = await SpecializedLoop(
        SpecializedConfig(engine=engine, schema=SCHEMA, tools=[look], system_prompt="Be brief.")
    ).call("Which?")
    assert (result.content, result.usage.requests, result.usage.tool_calls) == (Y, 3, 1)
    gathering, _, answering = engine.requests
    assert [tool.name for tool in gathering.tools] == ["look"]
    assert gathering.output is None
    assert not answering.tools
    assert answering.output is not None
    said = [message.text for message in answering.messages]
    assert (said[0], said[-2], said[-1]) == ("Be brief.", "It is tea.", PHASE_2)
    assert gathering.settings.temperature is None
    assert answering.settings.temperature == 0.3


class Provider:
    """Knows one thing, and notes what it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.error = error

    async def build(self, query: str) -> list[Message]:
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        return [Message(Role.SYSTEM, (Text("Relevant context:\n\n[1] (a.md): tea"),))]


async def test_context_is_looked_up_for_the_prompt_and_is_there_in_both_phases() -> None:
    provider, engine = Provider(), Noting("gathered", X)
    config = SpecializedConfig(engine=engine, schema=SCHEMA, tools=[look], context_provider=provider)
    await SpecializedLoop(config).call("Which?")
    assert provider.asked == ["Which?"], "the words of the second phase are not looked up"
    assert all("[1] (a.md): tea" in request.messages[0].text for request in engine.requests)


async def test_a_provider_that_fails_is_done_without() -> None:
    provider, engine = Provider(OSError("no disk")), ScriptedEngine(X)
    loop = SpecializedLoop(SpecializedConfig(engine=engine, schema=SCHEMA, context_provider=provider))
    assert (await loop.call("Which?")).output == {"a": "x"}


async def test_a_type_in_the_place_of_a_schema() -> None:
    class Colour(BaseModel):
        name: str

    loop = SpecializedLoop(SpecializedConfig(engine=ScriptedEngine('{"name":"red"}'), schema=Colour))
    assert (await loop.call("Which?")).output == Colour(name="red")


async def test_callbacks_hear_all_phases() -> None:
    heard: list[Any] = []

    def called(name: str, args_json: str) -> None:
        heard.append((name, args_json))

    handler = StreamHandler(on_content=heard.append, on_tool_call=called)
    engine = ScriptedEngine(call("look", {"topic": "tea"}), "It is tea.", X, chunk=6)
    config = SpecializedConfig(engine=engine, schema=SCHEMA, tools=[look], stream=handler)
    await SpecializedLoop(config).call("Which?")
    assert heard[0] == ("look", '{"topic":"tea"}')
    assert "".join(heard[1:]) == f"It is tea.{X}"


GRAMMAR = 'root ::= "{\\"a\\":\\"" ("x" | "y") "\\"}"'


async def test_a_grammar_holds_the_phase_that_answers() -> None:
    engine = Noting("gathered", X)
    config = SpecializedConfig(engine=engine, schema=SCHEMA, tools=[look], grammar=GRAMMAR, max_tokens=99)
    assert (await SpecializedLoop(config).call("Which?")).output == {"a": "x"}
    assert [request.grammar for request in engine.requests] == [None, GRAMMAR]
    assert [request.settings.max_tokens for request in engine.requests] == [99, 99]
    votes = Noting(X, X, X)
    await RedundantLoop(RedundantConfig(engine=votes, schema=SCHEMA, grammar=GRAMMAR)).call("Which?")
    assert [request.grammar for request in votes.requests] == [GRAMMAR] * 3


async def test_an_observer_is_told_of_one_answer_and_of_a_vote() -> None:
    log = InMemoryEventLog()
    await SpecializedLoop(SpecializedConfig(engine=Noting(X), schema=SCHEMA, observer=log)).call("Which?")
    asked = [event for event in log.events() if event.action == "infer"]
    assert len(asked) == 1
    log = InMemoryEventLog()
    config = RedundantConfig(engine=Noting(X, X, X), schema=SCHEMA, system_prompt="Be brief.", observer=log)
    await RedundantLoop(config).call("Which?", loop_id="v")
    asked = [event for event in log.events() if event.action == "infer"]
    assert len(asked) == 3
    assert {event.correlation.loop_id for event in log.events()} >= {"v", "v-s0_0_0", "v-s0_1_0", "v-s0_2_0"}


def test_what_has_to_be_there() -> None:
    with pytest.raises(NoEngine, match="engine is needed"):
        SpecializedLoop(SpecializedConfig(schema=SCHEMA))
    with pytest.raises(SchemaRequired, match="schema is needed"):
        SpecializedLoop(SpecializedConfig(engine=ScriptedEngine()))


# Votes


def voting(*answers: Answer, **options: Any) -> RedundantLoop:
    return RedundantLoop(RedundantConfig(engine=by_loop(*answers), schema=SCHEMA, **options))


async def test_the_majority_wins_with_its_share() -> None:
    result = await voting(X, Y, X).call("Which?")
    assert (result.content, result.output, result.confidence) == (X, {"a": "x"}, pytest.approx(2 / 3))
    assert result.candidates == (X, Y, X)
    assert result.usage.requests == 3


@pytest.mark.parametrize("concurrency", [1, 2, 3])
async def test_replicas_are_asked_one_after_the_other_unless_more_are_wanted(concurrency: int) -> None:
    open_now, most = 0, 0

    async def answer(request: Request) -> Any:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        for _ in range(20):
            await asyncio.sleep(0)
        open_now -= 1
        return X

    engine = FunctionEngine(answer, info=ModelInfo("votes", provider="test"))
    wanted: dict[str, Any] = {} if concurrency == 1 else {"concurrency": concurrency}
    await RedundantLoop(RedundantConfig(engine=engine, schema=SCHEMA, **wanted)).call("Which?")
    assert most == concurrency


async def test_answers_that_mean_the_same_are_the_same() -> None:
    result = await voting('{"a" : "x"}', Y, X, concurrency=3).call("Which?")
    assert (result.content, result.confidence) == ('{"a" : "x"}', pytest.approx(2 / 3))


async def test_unanimity() -> None:
    assert (await voting(X, X, X, voting=UnanimityVoting()).call("Which?")).confidence == 1.0
    with pytest.raises(NoConsensus, match="candidate 2 differs from candidate 0"):
        await voting(X, X, Y, voting=UnanimityVoting()).call("Which?")


async def test_a_replica_that_fails_does_not_sink_the_vote() -> None:
    result = await voting(EngineError("no power"), X, X).call("Which?")
    assert (result.content, result.candidates, result.errors) == (X, (X, X), ("no power",))
    assert result.confidence == pytest.approx(2 / 3), "one that failed agrees with nobody"


async def test_only_if_all_fail_the_call_does_as_the_first_did() -> None:
    with pytest.raises(EngineError, match="no power"):
        await voting(EngineError("no power"), EngineError("two"), EngineError("three")).call("Which?")


async def test_no_more_are_asked_than_decide() -> None:
    engine = by_loop(X, X, X, X, X)
    config = RedundantConfig(engine=engine, schema=SCHEMA, n=5, stop_early=True)
    result = await RedundantLoop(config).call("Which?")
    assert len(result.candidates) == 3
    assert result.confidence == pytest.approx(3 / 5)


class Last:
    """A voting of one's own, which cannot tell whether it is decided."""

    def vote(self, candidates: Sequence[str]) -> tuple[str, float]:
        return candidates[-1], 0.5


async def test_a_voting_of_ones_own() -> None:
    result = await voting(X, X, Y, voting=Last(), stop_early=True).call("Which?")
    assert (result.content, result.confidence) == (Y, 0.5)


class Strange:
    def vote(self, candidates: Sequence[str]) -> tuple[str, float]:
        return "something else", 0.5


async def test_a_voting_that_chooses_what_is_not_there() -> None:
    with pytest.raises(NoConsensus, match="must give one of the candidates"):
        await voting(X, X, Y, voting=Strange()).call("Which?")


@pytest.mark.parametrize("wrong", [{"n": -1}, {"n": "3"}, {"concurrency": 0}, {"voting": "majority"}])
def test_wrong_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        voting(X, **wrong)


async def test_a_vote_that_breaks_off_anywhere_goes_on_where_it_stood() -> None:
    for left in range(60):
        journal = Dying(left)
        loop = voting(X, Y, X)
        try:
            await loop.call("Which?", journal=journal, loop_id="v")
        except JournalFailure:
            answered = [
                name for name in await journal.loops() if name != "v" and await _is_over(journal, name)
            ]
            journal.left, asked = -1, list[str]()
            again = RedundantLoop(RedundantConfig(engine=by_loop(X, Y, X, asked=asked), schema=SCHEMA))
            result = await again.call("Which?", journal=journal, loop_id="v")
            assert (result.content, result.confidence) == (X, pytest.approx(2 / 3))
            assert not set(asked) & set(answered), "a replica that has answered is not asked again"
        else:
            assert left > 10
            return
    raise AssertionError("it never came to its end")


async def _is_over(journal: Dying, loop_id: str) -> bool:
    from flyball.core.events import Ended

    return any(isinstance(event, Ended) for event in await journal.read(loop_id))


async def test_under_every_driver(where: Where) -> None:
    loop = RedundantLoop(
        RedundantConfig(engine=Script(X), schema=SCHEMA, voting=MajorityVoting(), name="votes")
    )
    result = await loop.call("Which?", **where.options({"loop_id": f"vote-{where.kind}"}))
    assert (result.content, result.confidence) == (X, 1.0)
