"""How large a model call will be, roughly: what is known of it before the model has counted."""

from __future__ import annotations

from msgspec import json

from flyball.core.tokens import TokenEstimator, by_bytes, estimate_tokens
from flyball.inference.request import Request


def input_tokens(request: Request, estimator: TokenEstimator = by_bytes) -> int:
    """The tokens that go in: messages, tools and the schema of the output."""
    told = [json.encode([tool.name, tool.description, tool.parameters]) for tool in request.tools]
    if request.output is not None:
        told.append(json.encode(request.output.schema))
    return estimate_tokens(request.messages, estimator) + sum(
        [int(estimator(text.decode("utf-8"))) for text in told]
    )


def call_tokens(request: Request) -> int:
    """The tokens of the whole call: what goes in, and what may come out where the settings say how much."""
    return input_tokens(request) + (request.settings.max_tokens or 0)
