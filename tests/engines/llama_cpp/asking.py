"""Requests for the tests: short answers, always the same ones."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

from flyball.core.messages import system, user
from flyball.core.settings import ModelSettings
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.request import Request

LONG = {"ignore_eos": True}
"""Options that make an answer go on until its tokens are used up."""


def ask(prompt: str, tokens: int = 8, *, options: dict[str, Any] | None = None, **fields: Any) -> Request:
    settings = ModelSettings(max_tokens=tokens, temperature=0.0, options=options)
    return Request((system("Be brief."), user(prompt)), settings=settings, **fields)


def long_prompt(words: int, first: str = "Read") -> str:
    """A prompt of about so many tokens, like no other in its first word."""
    return f"{first} {'word ' * words}"


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> float:
    """How long it took until something was so."""
    begun = time.monotonic()
    async with asyncio.timeout(seconds):
        while not await condition():
            pass
    return time.monotonic() - begun


async def idle(engine: LlamaCppEngine) -> bool:
    return await engine.busy_slots() == 0


def pid_of(engine: LlamaCppEngine) -> int:
    running = engine._host.running  # pyright: ignore[reportPrivateUsage]
    assert running is not None
    return running.pid


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
