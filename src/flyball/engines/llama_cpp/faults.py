"""What goes wrong in the child, as flyball's errors: which kind each is, and what to do about it."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Any

from flyball.core.errors import (
    ContextExceeded,
    EngineError,
    FlyballError,
    GrammarMalformed,
    MissingExtra,
    MissingLibrary,
    ModelFileInvalid,
    UserError,
)

LONGEST_TOKEN = 512
"""Characters that no token is longer than: vocabularies have runs of 128 spaces, and of 256 at the most."""
_CLOCK = re.compile(r"^[\d.]+ [EW] ")
_LIBRARY = re.compile(r"(lib[\w+-]+\.(?:so[\w.]*|dylib)|[\w-]+\.dll)")
_TOO_LARGE = re.compile(r"input \((\d+) tokens\) is too large.*batch size: (\d+)")
_PACKAGES = {
    "libgomp": "libgomp1 on Debian and Ubuntu, libgomp on Fedora and Alpine",
    "libstdc++": "libstdc++6 on Debian and Ubuntu, libstdc++ on Fedora and Alpine",
}


def load_failure(kind: str, message: str, model: str, said: Sequence[str]) -> FlyballError:
    """Why a child could not load its model: from what it raised, and the last that it said."""
    if kind == "ModuleNotFoundError" and "xllamacpp" in message:
        return MissingExtra(
            "the engine for 'local' needs xllamacpp, which is not installed: pip install 'flyball[local]'",
            provider="local",
            extra="local",
        )
    if kind in {"ImportError", "OSError"}:
        return _library_failure(message)
    reasons = [line for line in said if "error loading model" in line] or list(said)
    reason = _CLOCK.sub("", reasons[0]).rpartition("error loading model: ")[2] if reasons else message
    return ModelFileInvalid(
        f"{model} cannot be loaded as a model: {reason}", model=model, reason=message, stderr=list(said)
    )


def _library_failure(message: str) -> MissingLibrary:
    found = _LIBRARY.search(message)
    library = found[1] if found else "a library"
    package = next((text for stem, text in _PACKAGES.items() if library.startswith(stem)), None)
    remedy = f"install {package}" if package else "install the package that brings it"
    return MissingLibrary(
        f"the embedded engine cannot start without the system's {library} ({message}): {remedy}",
        library=library,
    )


def gone(model: str, status: int | None, said: Sequence[str], doing: str) -> EngineError:
    """The child ended while somebody waited for it."""
    how = "for no known reason" if status is None else f"with status {status}"
    if status is not None and status < 0:
        try:
            how = f"by {signal.Signals(-status).name}"
        except ValueError:
            how = f"by signal {-status}"
    last = f"; it said last: {_CLOCK.sub('', said[-1])}" if said else ""
    return EngineError(
        f"the process of {model} ended {how} while {doing}{last}. The next call starts another",
        retryable=True,
        model=model,
        status=status,
        stderr=list(said),
    )


def too_slow(model: str, seconds: float) -> EngineError:
    """The model was not loaded in time."""
    return EngineError(
        f"{model} was not loaded within {seconds:g} s, and its process was ended: the machine may be short "
        "of memory or cores; take a smaller model, or give the engine more `start_seconds`",
        retryable=True,
        model=model,
        seconds=seconds,
    )


def check_length(messages: Sequence[dict[str, str]], model: str, window: int) -> None:
    """Do nothing where messages may fit into a context; which only the model can tell for sure.

    Raises:
        ContextExceeded: they have more characters than as many tokens can stand for. To count the tokens of
            a hundred megabytes would take minutes.
    """
    length = sum([len(message["content"]) for message in messages])
    if length > window * LONGEST_TOKEN:
        raise ContextExceeded(
            f"the prompt has {length:,} characters and {model} takes {window} tokens for prompt and answer "
            "together: shorten the history or the context, or give the engine a larger `context`",
            model=model,
            prompt_tokens=length // LONGEST_TOKEN,
            context_window=window,
        )


def call_failure(error: dict[str, Any], model: str, said: Sequence[str]) -> FlyballError:
    """Why a call failed, from what llama.cpp answered."""
    message = str(error.get("message", "it gave no reason"))
    if error.get("type") == "exceed_context_size_error":
        needed, window = error.get("n_prompt_tokens", 0), error.get("n_ctx", 0)
        return ContextExceeded(
            f"the prompt has {needed} tokens and {model} takes {window} for prompt and answer together: "
            "shorten the history or the context, or give the engine a larger `context`",
            model=model,
            prompt_tokens=needed,
            context_window=window,
        )
    too_large = _TOO_LARGE.search(message)
    if too_large is not None:
        return ContextExceeded(
            f"a text has {too_large[1]} tokens and {model} takes {too_large[2]} for one: cut it",
            model=model,
            prompt_tokens=int(too_large[1]),
            context_window=int(too_large[2]),
        )
    if "grammar" in message:
        reason = next((line for line in reversed(said) if line.startswith("parse:")), message)
        return GrammarMalformed(f"the grammar cannot be read by llama.cpp: {reason}", reason=message)
    if error.get("code") == 400:
        return UserError(f"{model} cannot take this request: {message}", model=model)
    return EngineError(f"{model} failed: {message}", model=model, body=error)
