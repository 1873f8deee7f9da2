"""RedundantLoop: the same question several times, and a vote on the answers.

The replicas are SpecializedLoops, each in a loop of its own, run one after the other unless a concurrency is
asked for: one local model serves one of them best. One that fails is no candidate; only if all fail, the call
fails, as the first of them did. The whole is a flow: after a crash the replicas that have answered are not
asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from msgspec import Struct, convert
from typing_extensions import Unpack

from flyball.core.errors import NoConsensus, UserError
from flyball.core.flow import replicas_at
from flyball.core.messages import Content, Message
from flyball.core.usage import RunUsage
from flyball.orchestrate.flow.options import FlowOptions
from flyball.orchestrate.flow.parts import StepOutcome
from flyball.orchestrate.flow.result import FlowResult
from flyball.orchestrate.flow.running import run_flow
from flyball.orchestrate.flow.steps import RedundantSteps, TransformStep
from flyball.orchestrate.lifecycle import Mode
from flyball.orchestrate.patterns.asking import Telling
from flyball.orchestrate.patterns.failing import by_category
from flyball.orchestrate.patterns.phases import PatternFlow, Phases
from flyball.orchestrate.patterns.specialized import SpecializedConfig, SpecializedLoop
from flyball.orchestrate.patterns.voting import MajorityVoting, VotingStrategy, canonical
from flyball.orchestrate.result import RunResult

VOTE = "vote"
Outcomes: TypeAlias = list[StepOutcome[Any] | None]


@dataclass(frozen=True, kw_only=True)
class Redundancy:
    """How often a question is asked, and how is voted.

    `n` 0 means 3. `concurrency` is how many replicas are asked at once. With `stop_early` no more of them are
    asked once those that are left cannot change the outcome, if the voting can tell.

    Raises:
        UserError: a number is none that it can be, or the voting is none.
    """

    n: int = 0
    voting: VotingStrategy = field(default_factory=MajorityVoting)
    concurrency: int = 1
    stop_early: bool = False

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 0:
            raise UserError(f"n is how many replicas there are, or 0 for 3, not {self.n!r}")
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise UserError(f"concurrency is how many are asked at once, from 1, not {self.concurrency!r}")
        if not isinstance(self.voting, VotingStrategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"voting needs a method vote(candidates), which {self.voting!r} has not")

    @property
    def replicas(self) -> int:
        """How many there are."""
        return self.n or 3


@dataclass(frozen=True, kw_only=True)
class RedundantConfig(SpecializedConfig, Redundancy):
    """What a RedundantLoop is made of: what its replicas are made of, and how they vote."""

    name: str = "redundant"


class Verdict(Struct, frozen=True):
    """What a vote has come to: whose answer counts, and how sure that is among all that were to be asked."""

    winner: int
    confidence: float


class RedundantResult(Struct, frozen=True, eq=False):
    """The winner of a vote.

    `candidates` are the answers of all replicas that gave one, as they wrote them; `errors` say why the
    others gave none. `confidence` is by all `n` replicas: one that failed, or was not asked any more, agrees
    with nobody.
    """

    content: str
    output: Any
    confidence: float
    candidates: tuple[str, ...]
    usage: RunUsage
    errors: tuple[str, ...]
    winner: RunResult[Any]
    flow: FlowResult[Any]

    @property
    def loop_id(self) -> str:
        """The id by which the whole can be gone on with."""
        return self.flow.loop_id


class RedundantLoop:
    """Asks several times, and votes.

    Raises:
        NoEngine: the configuration names no model.
        SchemaRequired: it has no schema.
    """

    def __init__(self, config: RedundantConfig) -> None:
        self.config = config
        asked = SpecializedLoop(config)
        self._replica, self._watchers = asked.phases, asked.watchers

    async def call(self, prompt: Content, **options: Unpack[FlowOptions]) -> RedundantResult:
        """Ask all replicas, and give the winner.

        With a journal and a `loop_id` that it holds already, it goes on where it stood.

        Raises:
            NoConsensus: the voting could not choose.
            FlyballError: no replica gave an answer: why the first one did not.
        """
        options.setdefault("features", self._watchers)
        async with by_category(self._replica.answering.config.output):
            return voted(await run_flow(vote_on(self._replica, self.config, prompt), None, options))


def vote_on(
    replica: Phases,
    redundancy: Redundancy,
    prompt: Content | None,
    messages: Sequence[Message] = (),
    *,
    planned: Telling | None = None,
) -> PatternFlow:
    """A question that is put to the vote, after a conversation, as a flow: what it gives is the verdict.

    `planned`: the flow is given a plan that all replicas go by, and are told of so.
    """
    voting, count = redundancy.voting, redundancy.replicas

    def is_decided(outcomes: Outcomes) -> bool:
        decided = getattr(voting, "decided", None)
        remaining = sum(outcome is None for outcome in outcomes)
        return decided is not None and bool(decided([text for _, text in _candidates(outcomes)], remaining))

    def verdict(outcomes: Outcomes) -> Verdict:
        return _verdict(voting, outcomes)

    replicas = [replica.step(prompt, messages, name=f"replica {at}", planned=planned) for at in range(count)]
    until = is_decided if redundancy.stop_early else None
    asked = RedundantSteps[Any, Any](
        *replicas, concurrency=redundancy.concurrency, until=until, name="replicas"
    )
    vote = TransformStep(verdict, name=VOTE)
    return PatternFlow(asked, vote, name=replica.name, mode=Mode.REDUNDANT, tools=replica.tools)


def _verdict(voting: VotingStrategy, outcomes: Outcomes) -> Verdict:
    candidates = _candidates(outcomes)
    if not candidates:
        errors = [outcome.error for outcome in outcomes if outcome is not None]
        raise next(iter(filter(None, errors)), NoConsensus("no replica was asked"))
    vote: Any = voting.vote([text for _, text in candidates])
    both: tuple[Any, ...] = cast("tuple[Any, ...]", vote) if isinstance(vote, tuple) else ()
    winner, confidence = both if len(both) == 2 else (cast("Any", vote), None)
    chosen = next((at for at, text in candidates if text == winner), None)
    if chosen is None or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise NoConsensus(
            f"the voting chose {winner!r:.200} with confidence {confidence!r}: it must give one of the "
            "candidates, and a number from 0 to 1"
        )
    return Verdict(chosen, confidence * len(candidates) / len(outcomes))


def _candidates(outcomes: Outcomes) -> list[tuple[int, str]]:
    """The answers that there are, in the form in which they are compared, with their replicas' numbers."""
    return [
        (at, canonical(outcome.output))
        for at, outcome in enumerate(outcomes)
        if outcome is not None and outcome.error is None
    ]


def voted(flow: FlowResult[Any]) -> RedundantResult:
    """What a flow that was a vote has given."""
    given: Any = flow.output
    verdict = given if isinstance(given, Verdict) else convert(given, Verdict)  # read without the code
    ended = {step.path: step for step in flow.steps}
    asked = replicas_at(flow.state.flow)
    assert asked is not None, "it was a vote"
    replicas = flow.state.flow.steps[asked].steps
    answers = {
        at: step
        for at, replica in enumerate(replicas)
        if (step := ended.get(f"{asked}.{at}.{len(replica.steps) - 1}")) is not None and step.run is not None
    }
    texts = [step.run.text for step in answers.values() if step.run is not None and step.error is None]
    chosen = answers[verdict.winner]
    assert chosen.run is not None, "a replica is a loop"
    return RedundantResult(
        chosen.run.text,
        chosen.output,
        verdict.confidence,
        tuple(texts),
        flow.usage,
        tuple([step.error.message for step in flow.steps if step.error is not None]),
        chosen.run,
        flow,
    )
