"""Steps that find things, and put what was found into another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from flyball.context.retriever import Retriever
from flyball.core.context_provider import ContextProvider
from flyball.core.errors import ConfigurationFailure
from flyball.core.messages import Message
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.plan.handlers.asking import plan_question
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import RerankInput, StepInput
from flyball.orchestrate.plan.steps import PlanStep, mismatch
from flyball.rerank.candidate import Candidate


@runtime_checkable
class CandidateReranker(Protocol):
    """Puts candidates into another order. `flyball.rerank.Reranker` is one."""

    async def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that are good enough, the best first."""
        ...


def retrieve_handler(provider: ContextProvider | Retriever | None, limit: int = 5) -> StepHandler:
    """Looks something up: takes the question as text.

    A retriever gives a `RerankInput`: the question, and what was found, which a rerank step takes as it is. A
    context provider gives its messages.
    """

    async def build(step: PlanStep) -> list[Message]:
        if provider is None:
            raise ConfigurationFailure("retrieve handler: nil context provider")
        assert isinstance(provider, ContextProvider)
        return list(await provider.build(step.input_as(str)))

    async def retrieve(step: PlanStep) -> RerankInput:
        assert isinstance(provider, Retriever)
        query = step.input_as(str)
        found = StepInput.of(list(await provider.retrieve(query, limit)))
        return RerankInput(query, found.candidates)

    return build if provider is None or isinstance(provider, ContextProvider) else retrieve


def rerank_handler(reranker: CandidateReranker | None) -> StepHandler:
    """Puts what was found into another order: a `RerankInput`, or candidates for the plan's question."""

    async def rerank(context: StepContext[Any], step: PlanStep) -> list[Candidate]:
        if reranker is None:
            raise ConfigurationFailure("rerank handler: nil reranker")
        given = StepInput.of(step.input)
        if not given.candidates and not isinstance(step.input, RerankInput):
            raise mismatch("RerankInput", step.input)
        return list(await reranker.rerank(given.query or plan_question(context), given.candidates))

    return rerank
