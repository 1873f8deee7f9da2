"""ConversationBuffer: what was said, as much of it as is kept. Every view of it is a valid history.

What is kept and left out are exchanges: what the user says, with all that follows up to what the user says
next. So no call is parted from its result, and nobody speaks twice in a row. Of an exchange that alone is too
long, the oldest answers that called tools are left out, with their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from threading import RLock
from typing import TypeAlias

from msgspec.structs import replace

from flyball.core.errors import InvalidMessage, MemoryFull, UserError
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, ToolResult
from flyball.memory.policy import EvictionStrategy, MemoryPolicy

Wanted: TypeAlias = str | Callable[[Message], bool]


class _Exchange:
    """What the user said and what followed; `used` grows each time that it is said or recalled."""

    __slots__ = ("messages", "used")

    def __init__(self, said: Message, used: int) -> None:
        self.messages = [said]
        self.used = used


class ConversationBuffer:
    """The messages of a conversation, in order; it may be used from several threads.

    Guarantees: whatever was appended, `messages()` is a history that every provider takes. The leading system
    message stays, and is not counted. What was said last stays, with what the user had said before it, even
    where that alone is more than may be kept. A call is shown once its results are there: until then it is
    `pending`. What does not fit behind what was said is refused, and leaves nothing behind.

    Args:
        max_messages: how many messages are kept; without it, as the policy says.
        policy: that, and what goes first.

    Raises:
        UserError: a number that cannot be.
    """

    def __init__(self, max_messages: int | None = None, policy: MemoryPolicy | None = None) -> None:
        policy = policy or MemoryPolicy()
        self.policy = policy if max_messages is None else replace(policy, max_messages=max_messages)
        self._lock = RLock()
        self._ticks = count(1)
        self._system: Message | None = None
        self._exchanges: list[_Exchange] = []
        self._pending: Message | None = None
        self._kept = 0

    @property
    def pending(self) -> Message | None:
        """The last answer, if it calls tools whose results are not there yet."""
        with self._lock:
            return self._pending

    def messages(self) -> list[Message]:
        """What is kept, as a list of its own: a valid history."""
        with self._lock:
            lead = [] if self._system is None else [self._system]
            return [*lead, *[message for exchange in self._exchanges for message in exchange.messages]]

    def __len__(self) -> int:
        """How many messages are kept, the system message aside."""
        with self._lock:
            return self._kept

    def append(self, message: Message) -> None:
        """Add what was said, and leave out what is too much then.

        Raises:
            InvalidMessage: it does not fit behind what was said.
            MemoryFull: there is no room, and nothing may be left out.
        """
        with self._lock:
            self._check(message)
            self._add(message)
            self._evict()

    def extend(self, messages: Iterable[Message]) -> None:
        """Add several, all of them or, where one is refused, none.

        Raises:
            InvalidMessage: one does not fit.
            MemoryFull: there is no room, and nothing may be left out.
        """
        with self._lock:
            before = self._system, self._pending, self._kept
            held = [(exchange, list(exchange.messages)) for exchange in self._exchanges]
            try:
                for message in messages:
                    self.append(message)
            except Exception:
                self._system, self._pending, self._kept = before
                self._exchanges = [exchange for exchange, _ in held]
                for exchange, said in held:
                    exchange.messages = said
                raise

    def load(self, messages: Iterable[Message]) -> None:
        """Have these messages in the place of what is kept, such as those of a run that is over.

        Raises:
            InvalidMessage: they are no valid history.
            MemoryFull: they are too many, and nothing may be left out.
        """
        with self._lock:
            other = ConversationBuffer()
            other._ticks = self._ticks
            other.extend(messages)
            self._check_room(other._kept)
            _keep_used(self._exchanges, other._exchanges)
            self._system, self._pending, self._kept = other._system, other._pending, other._kept
            self._exchanges = other._exchanges
            self._evict()

    def recall(self, wanted: Wanted) -> list[Message]:
        """The messages of the exchanges in which something stands, the oldest first.

        Under `lru` an exchange that is recalled counts as used just now.

        Args:
            wanted: a text, in upper or lower case, or a function that says whether a message is meant.
        """
        with self._lock:
            found = [one for one in self._exchanges if any(_is_meant(each, wanted) for each in one.messages)]
            for exchange in found:
                exchange.used = next(self._ticks)
            return [message for exchange in found for message in exchange.messages]

    def drop_pending(self) -> Message | None:
        """Give up the answer whose results are not there, and say which it was."""
        with self._lock:
            pending, self._pending = self._pending, None
            return pending

    def clear(self) -> None:
        """Forget everything, the system message too."""
        with self._lock:
            self._system, self._exchanges, self._pending, self._kept = None, [], None, 0

    def _check(self, message: Message) -> None:
        """See whether a message fits behind what was said: what comes right before it tells."""
        if type(message) is not Message:  # pyright: ignore[reportUnnecessaryComparison] - anybody's
            raise InvalidMessage(f"a conversation is made of messages, not of {message!r:.100}")
        exchange = self._exchanges[-1].messages if self._exchanges else []
        before = [*exchange[:1], *exchange[max(1, len(exchange) - 2) :]]
        if len(before) > 1 and before[1].role is Role.TOOL:
            del before[1]  # the end of another step
        if self._pending is not None:
            before.append(self._pending)
        lead = [] if self._system is None else [self._system]
        behind = [_answered(message)] if message.tool_calls else []
        try:
            check_history([*lead, *before, message, *behind])
        except InvalidMessage as error:
            raise InvalidMessage(f"this does not fit behind what was said: {error.message}") from error
        more = 0 if message.role is Role.SYSTEM else 2 if self._pending is not None else 1
        self._check_room(self._kept + more)

    def _check_room(self, wanted: int) -> None:
        most = self.policy.max_messages
        if self.policy.eviction_strategy == EvictionStrategy.NONE and most is not None and wanted > most:
            raise MemoryFull(
                f"the conversation has {self._kept} of {most} messages, and none may be left out: begin "
                "another, or take another eviction_strategy",
                allowed=most,
            )

    def _add(self, message: Message) -> None:
        if message.role is Role.SYSTEM:
            self._system = message
        elif message.role is Role.USER:
            self._exchanges.append(_Exchange(message, next(self._ticks)))
            self._kept += 1
        elif message.tool_calls:
            self._pending = message
        else:
            said = [message] if self._pending is None else [self._pending, message]
            self._exchanges[-1].messages += said
            self._exchanges[-1].used = next(self._ticks)
            self._kept += len(said)
            self._pending = None

    def _evict(self) -> None:
        most, strategy = self.policy.max_messages, self.policy.eviction_strategy
        if most is None or strategy == EvictionStrategy.NONE:
            return
        while self._kept > most and len(self._exchanges) > 1:
            older = self._exchanges[:-1]
            gone = min(older, key=_used) if strategy == EvictionStrategy.LRU else older[0]
            self._exchanges.remove(gone)
            self._kept -= len(gone.messages)
        while self._kept > most and (left_out := _without_oldest_step(self._exchanges[-1].messages)):
            self._kept -= left_out


def _used(exchange: _Exchange) -> int:
    return exchange.used


def _keep_used(known: list[_Exchange], loaded: list[_Exchange]) -> None:
    """Exchanges that were known are as long unused as they were; both lists are in the order of the talk."""
    at = 0
    for exchange in loaded[:-1]:
        for place in range(at, len(known)):
            if known[place].messages == exchange.messages:
                exchange.used, at = known[place].used, place + 1
                break


def _without_oldest_step(messages: list[Message]) -> int:
    """Leave out the first answer of an exchange, with the results of its calls; not the last one.

    Gives how many messages that are.
    """
    steps = [at for at, message in enumerate(messages) if message.role is Role.ASSISTANT]
    if len(steps) < 2:
        return 0
    del messages[steps[0] : steps[1]]
    return steps[1] - steps[0]


def _answered(message: Message) -> Message:
    """Results of a message's calls, which stand for those that will come."""
    return Message(Role.TOOL, tuple([ToolResult(call.id, call.name) for call in message.tool_calls]))


def _is_meant(message: Message, wanted: Wanted) -> bool:
    if isinstance(wanted, str):
        return wanted.casefold() in message.text.casefold()
    if not callable(wanted):
        raise UserError(f"recall takes a text, or a function of a message, not {wanted!r:.100}")
    return bool(wanted(message))
