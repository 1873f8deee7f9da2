"""Pagantic's patterns of control, each a thin class on agents and flows.

| pattern | for | keeps |
| --- | --- | --- |
| AgentLoop | a conversation, with tools and context | the conversation |
| SpecializedLoop | one answer that follows a schema | nothing |
| RedundantLoop | the same, asked several times and voted on | nothing |
| PlanExecutor (`orchestrate.plan`) | steps of several kinds | nothing |

A pattern decides nothing by itself: what it does is in the journals of its loops and flows, and so it is as
durable as they are, under every driver.
"""

from flyball.orchestrate.patterns.redundant import Redundancy, RedundantConfig, RedundantLoop, RedundantResult
from flyball.orchestrate.patterns.specialized import SpecializedConfig, SpecializedLoop, SpecializedResult
from flyball.orchestrate.patterns.voting import (
    MajorityVoting,
    SimilarityVoting,
    UnanimityVoting,
    Vote,
    VotingStrategy,
)

__all__ = [
    "MajorityVoting",
    "Redundancy",
    "RedundantConfig",
    "RedundantLoop",
    "RedundantResult",
    "SimilarityVoting",
    "SpecializedConfig",
    "SpecializedLoop",
    "SpecializedResult",
    "UnanimityVoting",
    "Vote",
    "VotingStrategy",
]
