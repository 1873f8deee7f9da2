"""The switch that forbids real model calls, for tests.

Whoever speaks to a real model asks `check_model_requests_allowed` before each call. What decides, the first
that says something:

1. the innermost `forbid_model_requests()` or `allow_model_requests()` that the code runs in (it holds for
   this task and those it starts, and disturbs no other);
2. the environment variable FLYBALL_ALLOW_MODEL_REQUESTS (0 or 1), which is how to set it for a whole suite;
3. nothing said: allowed.

Engines that answer from code make no model calls and never ask.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from flyball.core.errors import ModelRequestsForbidden, UserError

VARIABLE = "FLYBALL_ALLOW_MODEL_REQUESTS"
"""The environment variable that decides where no `with` block does."""

_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}

_here: ContextVar[bool | None] = ContextVar("flyball_model_requests", default=None)


def model_requests_allowed() -> bool:
    """Whether real model calls are allowed here.

    Raises:
        UserError: the environment variable says neither yes nor no.
    """
    here = _here.get()
    if here is not None:
        return here
    word = os.environ.get(VARIABLE, "").strip().lower()
    if not word:
        return True
    try:
        return _WORDS[word]
    except KeyError:
        raise UserError(f"{VARIABLE} is {word[:40]!r}: set it to 0 or 1", variable=VARIABLE) from None


def check_model_requests_allowed(provider: str) -> None:
    """Do nothing where real model calls are allowed. Engines call this before each request.

    Raises:
        ModelRequestsForbidden: they are not; the message says how to go without one, and how to allow them.
    """
    if not model_requests_allowed():
        raise ModelRequestsForbidden(
            f"real model calls are switched off here, and one to {provider!r} was tried: run with the model "
            "'test' or a ScriptedEngine in its place, or allow the call with `with allow_model_requests():` "
            f"or {VARIABLE}=1",
            provider=provider,
        )


@contextmanager
def allow_model_requests(allowed: bool = True) -> Generator[None]:
    """Allow real model calls inside the block (with False: forbid them), whatever was said outside."""
    before = _here.get()
    _here.set(allowed)
    try:
        yield
    finally:
        # Set, not reset by a token: a fixture may be torn down in another context than it was set up in.
        _here.set(before)


def forbid_model_requests() -> AbstractContextManager[None]:
    """Forbid real model calls inside the block, whatever was said outside."""
    return allow_model_requests(allowed=False)
