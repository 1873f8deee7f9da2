"""What a task says of itself: the words that a loop's metadata shares with SemStreams' messages."""

from __future__ import annotations

from enum import StrEnum


class AgentRole(StrEnum):
    """What an agent is there for; not to be taken for a message's role."""

    ARCHITECT = "architect"
    EDITOR = "editor"
    GENERAL = "general"
    QUALIFIER = "qualifier"
    DEVELOPER = "developer"
    REVIEWER = "reviewer"


ABOUT_A_TASK = (
    "role",
    "workflow_slug",
    "workflow_step",
    "channel_type",
    "channel_id",
    "user_id",
    "max_depth",
    "context_request_id",
)
"""What a task says of itself beside its prompt, and what stands in a loop's metadata under the same names."""
