"""Candidate: something that was found and may be told, with its score."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

RETRIEVAL_SCORE = "retrieval_score"
"""The key of a candidate's metadata that has the score it came with, before it was scored anew."""


class Candidate(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Something that was found. `score` is of whoever scored it last: a reranker's is from 0 to 1."""

    content: str
    score: float = 0.0
    source: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
