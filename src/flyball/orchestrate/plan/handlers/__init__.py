"""Handlers for the types of steps that pagantic names, each made from what it needs.

What is missing is told when a step is run, and not before: a handler that was made from None fails with what
it lacks, as any step may fail.
"""

from flyball.orchestrate.plan.handlers.asking import agent_handler, infer_handler
from flyball.orchestrate.plan.handlers.checking import validate_handler
from flyball.orchestrate.plan.handlers.finding import CandidateReranker, rerank_handler, retrieve_handler
from flyball.orchestrate.plan.handlers.patterns import pattern_handler
from flyball.orchestrate.plan.handlers.tooling import tool_handler

__all__ = [
    "CandidateReranker",
    "agent_handler",
    "infer_handler",
    "pattern_handler",
    "rerank_handler",
    "retrieve_handler",
    "tool_handler",
    "validate_handler",
]
