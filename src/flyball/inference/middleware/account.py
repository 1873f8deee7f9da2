"""Account: what became of one call on its way through middleware."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from flyball.core.around import Around, Sent
from flyball.core.compaction import ContextCompaction
from flyball.core.errors import ConfigurationFailure, InferenceFailure, InvalidMessage, MiddlewareFailed
from flyball.core.history import check_history
from flyball.inference.middleware.difference import can_be_recorded, difference
from flyball.inference.middleware.kinds import Middleware
from flyball.inference.request import Request


class Account:
    """Notes each request that reaches the model, how far the call has come, and whose a failure is."""

    __slots__ = ("_compactions", "_made", "_raised", "_sent", "_skipped")

    def __init__(self, made: Request) -> None:
        self._made = made
        self._sent: list[Sent] = []
        self._skipped = ""
        self._compactions: list[ContextCompaction] = []
        self._raised: list[Exception] = []
        """The errors that have left the engine or a middleware: who is further out only passes them on."""

    def around(self) -> Around | None:
        """What was done so far; None where the request has gone out once, as it was made."""
        if len(self._sent) == 1 and self._sent[0] == _AS_MADE:
            return None
        skipped = "" if self._sent else self._skipped
        return Around(tuple(self._sent), skipped, True, tuple(self._compactions))  # noqa: FBT003 - as in Around

    def passed(
        self, middleware: Middleware, given: Request, passed: Request, by: tuple[str, ...]
    ) -> tuple[str, ...]:
        """A middleware that was given a request passes one on: who has changed it until now.

        Raises:
            MiddlewareFailed: it is no request, or none that can be recorded.
        """
        if passed is given:
            return by
        if not isinstance(passed, Request):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's code
            raise not_given(middleware, passed, "a Request to pass on")
        if passed == given:
            return by
        if not can_be_recorded(given, passed):
            raise MiddlewareFailed(
                f"the middleware {middleware.name!r} made a request that cannot be recorded: its fields must "
                "be of their types, and hold nothing but JSON",
                middleware=middleware.name,
            )
        compaction = middleware.compaction(given, passed)
        if compaction is not None:
            if not _is_compaction(compaction):
                raise not_given(middleware, compaction, "a ContextCompaction with numbers in it")
            self._compactions.append(compaction)
        return (*by, middleware.name)

    @contextmanager
    def inside(self, middleware: Middleware) -> Generator[None]:
        """The call has come to a middleware: if it comes no further, that one answers for it.

        Raises:
            InferenceFailure: what the middleware raised; what came from further in is passed on as it is.
        """
        self._skipped = middleware.name
        try:
            yield
        except Exception as error:
            if any(error is one for one in self._raised):
                raise
            failure = _as_failure(middleware, error)
            self._raised.append(failure)
            if failure is error:
                raise
            raise failure from error

    @contextmanager
    def outgoing(self, request: Request, by: tuple[str, ...]) -> Generator[None]:
        """A request reaches the model, changed by these.

        Raises:
            InvalidMessage: no provider takes what they have made of its messages: it reaches nobody.
        """
        if by and request.messages != self._made.messages:
            _check_messages(request, by)
        self._note(request, by)
        try:
            yield
        except Exception as error:
            self._raised.append(error)
            raise

    def _note(self, request: Request, by: tuple[str, ...]) -> None:
        sent = difference(self._made, request)
        if sent != _AS_MADE:
            sent = replace(sent, by=by)
        last = self._sent[-1] if self._sent else None
        if last is not None and replace(last, times=1) == sent:
            self._sent[-1] = replace(last, times=last.times + 1)
        else:
            self._sent.append(sent)


_AS_MADE = Sent()


def _check_messages(request: Request, by: tuple[str, ...]) -> None:
    try:
        check_history(request.messages, complete=True)
    except InvalidMessage as error:
        raise InvalidMessage(
            f"the middleware {', '.join(map(repr, by))} made messages that cannot be sent: {error.message}",
            middleware=list(by),
        ) from error


def _as_failure(middleware: Middleware, error: Exception) -> InferenceFailure | ConfigurationFailure:
    """What a middleware raised, as what an engine may raise: its own error, or one that names it."""
    if isinstance(error, InferenceFailure | ConfigurationFailure):
        return error
    return MiddlewareFailed(
        f"the middleware {middleware.name!r} failed: {type(error).__name__}: {error}",
        retryable=isinstance(error, OSError),
        middleware=middleware.name,
    )


def _is_compaction(given: object) -> bool:
    """Whether something would be read back from a journal as a compaction."""
    try:
        return msgspec.convert(msgspec.to_builtins(given), ContextCompaction) == given
    except (msgspec.ValidationError, TypeError):
        return False


def not_given(middleware: Middleware, found: object, wanted: str) -> MiddlewareFailed:
    """A middleware gave something else than it must."""
    return MiddlewareFailed(
        f"the middleware {middleware.name!r} gave a {type(found).__name__}, not {wanted}",
        middleware=middleware.name,
    )
