"""A request that is tried again as a whole, where a policy says that its failure is worth it.

Nothing is begun anew: the loop that failed is opened again, as the signal `retry` does it, and goes on from
where it stood. So each try is another attempt of the same loop, and what was done well is not done twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from random import random
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.errors import UserError
from flyball.inference.retry_policy import RetryPolicy
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.inference.system_clock import sleep
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.failing import as_rule

Pieces: TypeAlias = AsyncGenerator[StreamEvent | SystemResponse]
"""The pieces of answers, and last the response."""


def sensible_retry(retry: Any, options: Mapping[str, Any]) -> RetryPolicy | None:
    """The policy by which the requests of a system are tried again.

    Raises:
        UserError: it is none, or there is no journal from which a request could be gone on with.
    """
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise UserError(f"retry= takes a RetryPolicy, not {retry!r:.100}")
    if retry is not None and "journal" not in options:
        raise UserError(
            "a request is tried again from its journal: give a system with retry= a journal=, too"
        )
    return retry


async def tried_again(
    first: Pieces,
    again: Callable[[str], Pieces],
    policy: RetryPolicy,
    clock: Clock,
    seconds: float | None = None,
) -> Pieces:
    """The pieces of a request, and of each further try; last the response of the last one.

    `again` opens the loop of an id again. What had come of an answer that broke off is taken back by a
    `Restart`. Closing it early closes what is being read, and ends a wait. `seconds` are what the request has
    for all tries: none is begun after them.
    """
    pieces, retries, begun = first, 0, clock.now()
    while True:
        response, whole = SystemResponse(), True
        try:
            async for piece in pieces:
                if isinstance(piece, SystemResponse):
                    response = piece
                else:
                    whole = isinstance(piece, Finish | Restart)
                    yield piece
        finally:
            await pieces.aclose()
        left = None if seconds is None else begun + seconds - clock.now()
        try:
            wait = _wait(response, policy, retries, left)
        except Exception as error:
            yield _not_judged(response, error)
            return
        if wait is None:
            yield response
            return
        if not whole:
            yield Restart()
        retries += 1
        await sleep(wait, clock)
        pieces = again(response.loop_id)


def _wait(response: SystemResponse, policy: RetryPolicy, retries: int, left: float | None) -> float | None:
    """After how many seconds a request is tried again; None: it is not."""
    if response.error is None or not response.loop_id:
        return None
    return policy.wait_after(response.error.exception(), retries, left, random())


def _not_judged(response: SystemResponse, error: Exception) -> SystemResponse:
    """The response where the policy's own function failed; what the request had failed with is behind it."""
    failure, before = as_rule(error, "retry_if failed"), response.error
    failure.caused_by = failure.caused_by if before is None else f"{before.kind}: {before.message}"
    return replace(response, error=failure.record())


async def alone(serving: Awaitable[SystemResponse]) -> Pieces:
    """A response that nobody hears the pieces of."""
    yield await serving


async def last_of(pieces: Pieces) -> SystemResponse:
    """The response, which comes last."""
    response = SystemResponse()
    async for piece in pieces:
        if isinstance(piece, SystemResponse):
            response = piece
    return response
