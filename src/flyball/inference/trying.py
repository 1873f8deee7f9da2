"""A model call that may take several tries, whole or in pieces: what `retrying` and `fallback` share.

Who is asked first, who next and after how long is theirs to say (`Tries`); how a call is begun again is here.

Rules kept here:
- a streamed call that failed before any of it was handed on is tried again, and nobody notices;
- one that failed later begins with a `Restart`, which comes with the first piece of the new answer: if there
  is none, the reader keeps what it had;
- a stream that ends without its `Finish` has failed;
- before another try begins, the stream of the last one is closed; closing or cancelling ends all of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from flyball.core.errors import UnexpectedModelBehavior
from flyball.inference.attempts import Attempts
from flyball.inference.engine import Engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import Finish, Restart, StreamEvent, close_stream


class Tries(Protocol):
    """The tries of one call. `attempts` are those that failed."""

    attempts: Attempts

    @property
    def engine(self) -> Engine:
        """Who is asked now."""
        ...

    async def after(self, error: Exception, *, shown: bool) -> None:
        """A try failed: get ready for the next one, waiting for it if need be.

        `shown` says that some of an answer was handed on already.

        Raises:
            Exception: there is no other try; the error to end with.
        """
        ...


async def asked(tries: Tries, request: Request) -> Result:
    """The answer of the first try that gives one."""
    while True:
        try:
            result = await tries.engine.infer(request)
        except Exception as error:
            failure = error
        else:
            return tries.attempts.on_result(result)
        await tries.after(failure, shown=False)


async def streamed(tries: Tries, request: Request) -> AsyncGenerator[StreamEvent, None]:
    """The same in pieces."""
    shown = False
    while True:
        void, pieces = shown, None
        failure: Exception
        try:
            pieces = tries.engine.stream(request)
            async for piece in pieces:
                if void:
                    void = False
                    yield Restart()
                shown = True
                if type(piece) is Finish:
                    yield tries.attempts.on_finish(piece)
                    return
                yield piece
            failure = _cut_off(tries.engine)
        except Exception as error:
            failure = error
        finally:
            if pieces is not None:
                await close_stream(pieces)
        await tries.after(failure, shown=shown)


def _cut_off(engine: Engine) -> UnexpectedModelBehavior:
    name = engine.model_info().name
    return UnexpectedModelBehavior(
        f"the stream of the model {name!r} ended without a Finish: the answer is cut off", model=name
    )
