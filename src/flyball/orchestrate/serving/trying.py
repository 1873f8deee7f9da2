"""A request that is tried again as a whole, where a policy says that its failure is worth it.

Nothing is begun anew: the loop that failed is opened again, as the signal `retry` does it, and goes on from
where it stood. So each try is another attempt of the same loop, and what was done well is not done twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from random import random
from typing import Any, TypeAlias

from flyball.core.clock import Clock
from flyball.core.errors import UserError
from flyball.inference.retry_policy import RetryPolicy
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.inference.system_clock import sleep
from flyball.orchestrate.contracts import SystemResponse

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
    first: Pieces, again: Callable[[str], Pieces], policy: RetryPolicy, clock: Clock
) -> Pieces:
    """The pieces of a request, and of each further try; last the response of the last one.

    `again` opens the loop of an id again. What had come of an answer that broke off is taken back by a
    `Restart`. Closing it early closes what is being read, and ends a wait.
    """
    pieces, retries = first, 0
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
        error = response.error
        if error is None or not response.loop_id or not policy.worth_another_try(error.exception(), retries):
            yield response
            return
        if not whole:
            yield Restart()
        retries += 1
        await sleep(policy.wait(retries, random()), clock)
        pieces = again(response.loop_id)


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
