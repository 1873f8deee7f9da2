"""Embeddings: texts in, vectors of length one out."""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.adapters.http.openai.reading import fields_of, param_of, reading, required, required_text
from flyball.core.forms.fields import Fields, items, malformed
from flyball.core.messages import JSON
from flyball.core.tokens import by_bytes

_MOST = 2048


class EmbeddingRequest(Struct, frozen=True):
    """What a client asks for: texts, and how their vectors are written."""

    model: str
    texts: tuple[str, ...]
    base64: bool = False
    dimensions: int | None = None


def read_embedding(body: object) -> EmbeddingRequest:
    """A request for embeddings, from its body as JSON.

    Raises:
        Refused: it is none, or asks for what cannot be done.
    """
    with reading():
        fields = fields_of(body)
        model = required_text(fields, "model")
        texts = _texts(required(fields, "input"), fields)
        form = fields.text("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise malformed(fields.place("encoding_format"), "float or base64", form)
        return EmbeddingRequest(model, texts, form == "base64", fields.whole("dimensions"))


def _texts(value: JSON, fields: Fields) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    found: list[str] = []
    for item, where in items(value, fields.place("input")):
        if isinstance(item, int | list):
            raise unsupported("input", "texts are taken, and no tokens: nobody knows whose tokens these are")
        if not isinstance(item, str):
            raise malformed(where, "text", item)
        if not item:
            raise Refused(
                "'input' cannot be an empty text.", param=param_of(fields, "input"), code="invalid_value"
            )
        found.append(item)
    if not 1 <= len(found) <= _MOST:
        raise Refused(f"'input' should be 1 to {_MOST} texts.", param="input", code="invalid_value")
    return tuple(found)


def write_embedding(request: EmbeddingRequest, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    """CreateEmbeddingResponse. Tokens are estimated: not every embedder counts them.

    Raises:
        Refused: the vectors are longer or shorter than was asked for.
    """
    length = len(vectors[0]) if vectors else 0
    if request.dimensions is not None and request.dimensions != length:
        raise unsupported("dimensions", f"the vectors of {request.model!r} have {length} numbers")
    tokens = sum([by_bytes(text) for text in request.texts])
    return {
        "object": "list",
        "model": request.model,
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": _base64(vector) if request.base64 else list(vector),
            }
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _base64(vector: Sequence[float]) -> str:
    """The numbers as 32-bit floats, the smallest byte first."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode("ascii")
