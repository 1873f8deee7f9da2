"""A model of a few thousand random weights whose tokens are bytes, written as a GGUF file.

It knows nothing, so what it writes under a grammar is the grammar's doing alone: the hardest reader there
is of what a grammar lets through, in llama.cpp itself.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

_WIDTH, _HEADS, _HIDDEN, _CONTEXT = 32, 4, 64, 4096
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_ALIGNMENT = 32


def write_tiny_model(path: Path, seed: int = 1) -> Path:
    """Write the model; the same seed gives the same bytes."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *([_BYTE] * 256)]
    # Pieces of several characters, so that a token can cross from one rule into the next.
    pieces = [
        '{"',
        '": ',
        '", "',
        '"}',
        "]}",
        "\u2581a",
        "the",
        "}}",
        ", ",
        "00",
        "\u00e9",
        '"]',
        "null",
        "\\n",
        "-1",
    ]
    tokens += pieces
    kinds += [_NORMAL] * len(pieces)
    data: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "tiny"),
        "llama.context_length": (_UINT32, _CONTEXT),
        "llama.embedding_length": (_UINT32, _WIDTH),
        "llama.block_count": (_UINT32, 1),
        "llama.feed_forward_length": (_UINT32, _HIDDEN),
        "llama.attention.head_count": (_UINT32, _HEADS),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT32, 1e-5),
        "llama.rope.dimension_count": (_UINT32, _WIDTH // _HEADS),
        "llama.vocab_size": (_UINT32, len(tokens)),
        "tokenizer.ggml.model": (_STRING, "llama"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.scores": (_ARRAY, (_FLOAT32, [0.0] * len(tokens))),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, kinds)),
        "tokenizer.ggml.bos_token_id": (_UINT32, 1),
        "tokenizer.ggml.eos_token_id": (_UINT32, 2),
        "tokenizer.ggml.unknown_token_id": (_UINT32, 0),
        "tokenizer.chat_template": (_STRING, "{% for m in messages %}{{ m.content }}{% endfor %}"),
    }
    shapes = {
        "token_embd.weight": (_WIDTH, len(tokens)),
        "blk.0.attn_norm.weight": (_WIDTH,),
        **{f"blk.0.attn_{part}.weight": (_WIDTH, _WIDTH) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_norm.weight": (_WIDTH,),
        "blk.0.ffn_gate.weight": (_WIDTH, _HIDDEN),
        "blk.0.ffn_up.weight": (_WIDTH, _HIDDEN),
        "blk.0.ffn_down.weight": (_HIDDEN, _WIDTH),
        "output_norm.weight": (_WIDTH,),
        "output.weight": (_WIDTH, len(tokens)),
    }
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(data)))
    for key, (kind, value) in data.items():
        head += _text(key) + struct.pack("<I", kind) + _value(kind, value)
    body = bytearray()
    chance = random.Random(seed)
    for name, shape in shapes.items():
        body += bytes(-len(body) % _ALIGNMENT)
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(body))
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        weights = [1.0] * count if "norm" in name else [chance.gauss(0, 0.3) for _ in range(count)]
        body += struct.pack(f"<{count}f", *weights)
    path.write_bytes(bytes(head) + bytes(-len(head) % _ALIGNMENT) + bytes(body))
    return path


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(kind: int, value: Any) -> bytes:
    match kind:
        case 8:
            return _text(value)
        case 9:
            inner, members = value
            return struct.pack("<IQ", inner, len(members)) + b"".join(
                _value(inner, member) for member in members
            )
        case 4:
            return struct.pack("<I", value)
        case 5:
            return struct.pack("<i", value)
        case _:
            return struct.pack("<f", value)
