"""Whether a turn needs a summary first, what is told of one that was made, and which model makes it."""

from __future__ import annotations

from flyball.core.apart import messages_apart
from flyball.core.compaction import CompactionPlan, CompactionStrategy, ContextCompaction
from flyball.core.cutting import cut_at
from flyball.core.errors import UserError
from flyball.core.messages import Role
from flyball.core.spec import CompactSpec, Purpose
from flyball.core.tokens import TokenEstimator, estimate_tokens
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.memory.compactor import Compactor
from flyball.orchestrate.compacted import can_be_planned, may_sum_up, remembered
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.features import Stages
from flyball.orchestrate.repairing import provider_of
from flyball.orchestrate.state import State


def summary_due(state: State, compactor: Compactor) -> CompactionPlan | None:
    """What is to be summed up before the turn, if anything is.

    Raises:
        FlyballError: the compactor failed.
    """
    if not may_sum_up(state):
        return None
    messages = remembered(state)
    try:
        tokens = max(
            estimate_tokens(messages, compactor.estimator), tokens_counted(state, compactor.estimator)
        )
        kept = compactor.keeps(messages_apart(messages), tokens)
    except Exception as error:
        raise as_rule(error, f"the compactor {compactor.name!r} failed") from error
    if kept is None:
        return None
    if type(kept) is not int or kept < 1:
        raise UserError(
            f"the compactor {compactor.name!r} keeps {kept!r} messages: it must keep one at least"
        )
    stop = cut_at(state.history, max(len(state.history) - kept, 0))
    plan = CompactionPlan(stop, len(messages), tokens)
    return plan if can_be_planned(state, plan) else None


def tokens_counted(state: State, estimator: TokenEstimator) -> int:
    """What the provider has counted for the last answer, with an estimate of what was said since.

    It is 0 where it did not say, and where the answer was given before the last summary: what was sent then
    was longer.
    """
    done, history = state.compaction, state.history
    since = 0 if done is None or done.made is None else done.covers
    for index in range(len(history) - 1, since - 1, -1):
        message = history[index]
        if message.role is Role.ASSISTANT:
            usage = message.usage
            counted = 0 if usage is None else usage.context_tokens or usage.total_tokens
            return counted and counted + estimate_tokens(history[index + 1 :], estimator)
    return 0


def summary_made(state: State, compactor: Compactor) -> ContextCompaction | None:
    """What the summary that was made in this turn came to, if one was."""
    done = state.compaction
    if done is None or done.made_in != state.turn:
        return None
    messages = remembered(state)
    after = estimate_tokens(messages, compactor.estimator)
    return ContextCompaction(
        CompactionStrategy.AUTO_SUMMARY,
        done.plan.messages,
        len(messages),
        done.plan.tokens,
        after,
        compactor.name,
    )


def compactor_of(stages: Stages) -> tuple[CompactSpec, dict[Purpose, Engine]]:
    """How and by which model an agent that has a compactor sums up, as its spec says it.

    Raises:
        UserError: there are two compactors.
        ConfigurationFailure: there is no such model.
    """
    compactor, *more = stages.auto_contexts
    if more:  # they would sum up each other's summaries
        names = ", ".join([one.name for one in stages.auto_contexts])
        raise UserError(f"an agent has one compactor at most, not {names}: leave all but one out")
    if compactor.model is None:
        return CompactSpec(compactor.name, compactor.instructions, settings=compactor.settings), {}
    engine = resolve_engine(compactor.model)
    name = compactor.model if isinstance(compactor.model, str) else engine.model_info().name
    provider = provider_of(engine) if stages.trackers and not isinstance(compactor.model, str) else ""
    spec = CompactSpec(compactor.name, compactor.instructions, name, provider, compactor.settings)
    return spec, {"compact": engine}
