"""The models that a client may name: the agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.adapters.http.openai.errors import no_model


def write_models(names: Iterable[str], created: int = 0) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [write_model(name, created) for name in names]}


def write_model(name: str, created: int = 0) -> dict[str, Any]:
    """Model."""
    return {"id": name, "object": "model", "created": created, "owned_by": "flyball"}


def one_model(name: str, names: Iterable[str], created: int = 0) -> dict[str, Any]:
    """One model by its name.

    Raises:
        Refused: there is none of that name.
    """
    if name not in tuple(names):
        raise no_model(name)
    return write_model(name, created)
