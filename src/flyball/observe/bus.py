"""EventBus: publish and subscribe by type, for runtime events and for any event of one's own.

On an agent it carries what happens in its runs. It lives in one process: what happens in a worker is carried
by the bus of the agent in that worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from flyball.core.errors import UserError
from flyball.observe.events import RuntimeEvent
from flyball.observe.watcher import Contexts, Watcher, unharmed

_log = logging.getLogger("flyball.observe")

EventT = TypeVar("EventT")


class EventBus(Watcher):
    """Carries events to whoever subscribed to their type. `Agent(features=[bus])`, and `ctx.event_bus`.

    - Handlers are called in the order in which they subscribed, each with one event at a time by the same
      publisher; a class hears of its subclasses too. A handler may be async. What it raises is logged, and
      the others are called all the same.
    - It may be used from several threads. A handler runs where `publish` was awaited, or, of what was queued,
      in the event loop that works the queue off: that of the first who published there, as long as it lives.
    - It may stand on many agents.
    """

    name = "event_bus"

    def __init__(self) -> None:
        self._subscriptions: tuple[_Subscription, ...] = ()
        """Never changed in place: who publishes goes through those that were there then."""
        self._lock = Lock()
        self._queue: deque[object] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<EventBus with {len(self._subscriptions)} subscriptions>"

    def subscribe(
        self, kind: type[EventT], handler: Callable[[EventT], Awaitable[None] | None]
    ) -> Callable[[], None]:
        """Have a handler called with each event of a type; gives what ends that.

        From when the subscription has ended, the handler is not called any more, also by who is publishing.

        Raises:
            UserError: no type, or nothing that can be called.
        """
        if not isinstance(kind, type) or not callable(handler):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(
                f"subscribe takes a type of events and a function, not {kind!r:.80} and {handler!r:.80}"
            )
        subscription = _Subscription(kind, handler)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)

        def unsubscribe() -> None:
            with self._lock:
                subscription.ended = True
                self._subscriptions = tuple([one for one in self._subscriptions if one is not subscription])

        return unsubscribe

    async def publish(self, event: object) -> None:
        """Hand an event to all who subscribed to it; returns when they have all been called, and are done.

        Raises:
            UserError: the bus is closed.
        """
        self._check_open()
        await self._hand_out(event)

    def publish_async(self, event: object) -> None:
        """Queue an event and return at once; what is queued is handed out in order, one after the other.

        Also for code that is not async, in any thread. Where no event loop is known yet, the event waits for
        the first one that something is published in, or for `flush`.

        Raises:
            UserError: the bus is closed.
        """
        with self._lock:
            self._check_open()
            self._queue.append(event)
            try:
                here = asyncio.get_running_loop()
            except RuntimeError:
                here = None
            known = self._loop
            if known is None or known.is_closed():
                known = self._loop = here
        if known is None:
            return
        if known is here:
            self._work()
            return
        try:
            known.call_soon_threadsafe(self._work)
        except RuntimeError:  # it was closed just now: the event waits for the next one
            _log.debug("the event loop of %r is closed", self)

    async def flush(self) -> None:
        """Wait until all that is queued has been handed out.

        Raises:
            UserError: in a handler of a queued event, which would wait for itself.
        """
        here = asyncio.get_running_loop()
        with self._lock:
            known = self._loop
            if known is None or known.is_closed():
                known = self._loop = here
        if known is here:
            await self._worked_off()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._worked_off(), known))

    async def aclose(self) -> None:
        """Hand out what is queued, and take nothing more. Agents that have it go on, untold."""
        await self.flush()
        with self._lock:
            self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def tell(self, event: RuntimeEvent, context: Contexts) -> Awaitable[None] | None:
        """See `Watcher.tell`."""
        if self._closed or not self._subscriptions:
            return None
        return self._hand_out(event)

    async def _hand_out(self, event: object) -> None:
        for subscription in self._subscriptions:
            if isinstance(event, subscription.kind) and not subscription.ended:
                await unharmed(subscription, type(event).__name__, subscription.handler, event)

    def _work(self) -> None:
        """Have the queue worked off in this event loop, if nobody is at it."""
        if self._queue and (self._worker is None or self._worker.done()):
            self._worker = asyncio.get_running_loop().create_task(self._work_off())

    async def _work_off(self) -> None:
        while self._queue:
            await self._hand_out(self._queue.popleft())

    async def _worked_off(self) -> None:
        self._work()
        while (worker := self._worker) is not None and not worker.done():
            if worker is asyncio.current_task():
                raise UserError("flush() was called in a handler of a queued event: it would wait for itself")
            await asyncio.wait([worker])
            self._work()

    def _check_open(self) -> None:
        if self._closed:
            raise UserError("the event bus is closed: publish before aclose(), or use another bus")


class _Subscription:
    """Who hears of what, until it ends."""

    __slots__ = ("ended", "handler", "kind")

    def __init__(self, kind: type[Any], handler: Callable[[Any], Any]) -> None:
        self.kind = kind
        self.handler = handler
        self.ended = False

    def __str__(self) -> str:
        return f"the event bus's handler {getattr(self.handler, '__qualname__', self.handler)!r}"
