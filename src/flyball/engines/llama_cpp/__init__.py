"""The embedded engine: llama.cpp (through xllamacpp) in a child process that is watched over.

    engine = LlamaCppEngine("smollm2-135m")        # a name, a path, hf:<owner>/<repo>/<file>.gguf
    engine = engine_for(parse_model("local"))      # the same child for everybody who asks for this model

Why a child: native code that crashes or hangs must not take the user's program with it, it cannot be forked,
and only another process can be ended at any moment. How it is spoken to: by frames over its standard input
and output (`child` has both ends), not over HTTP, because an answer can then be given up at the next batch of
the prompt, where an HTTP server only notices at the end of it; and because threads, not one event loop, own
the pipes, so that an engine may be used from one event loop after another.

Rules kept here:
- the child never outlives its parent, however that ends: its standard input closes, and where the system can
  (Linux) it kills the child by itself;
- a child that dies is a retryable failure for the calls it was at, and the next call starts another;
- who is cancelled is free at once; the slot is free at the next batch; other calls are not touched;
- a local model **is** a real model: `check_model_requests_allowed` is asked before each call.

`engine` is the seam, `host` keeps a child running, `process` is one child's life, `child` runs inside it;
`codec` translates, `sharing` lets several users have one child, `locating` finds the model's file. How tools
become text and a grammar is said by a protocol of `flyball.constraint.protocol`; `retelling` says it again of
a recorded call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.engines.llama_cpp.engine import LlamaCppEngine
    from flyball.engines.llama_cpp.sharing import engine_for

__all__ = [
    "LlamaCppEngine",
    "engine_for",
]

_HOMES = {
    "LlamaCppEngine": "engine",
    "engine_for": "sharing",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
