"""What is told of a loop's context to whoever listens: that it is being summed up, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.compaction import CompactionStrategy, ContextCompaction
from flyball.core.events import Event, Forked, ModelAnswered, ModelFailed, Started, TurnPrepared
from flyball.core.forms.semstreams import ContextEvent, ContextEventType
from flyball.core.messages import Message
from flyball.core.spec import Purpose


def context_events(events: Iterable[Event]) -> tuple[ContextEvent, ...]:
    """SemStreams' context events of an agent's journal, in their order.

    A summary is told before a model is asked for it and when it is sent for the first time, with its words;
    one that came to nothing has no second event. Whatever is left out without a summary, by a history
    processor or because it was too much, is told as collected. `utilization` is how full the model's window
    was, as far as a provider has said how large that is. A fork has those since it was forked.
    """
    found = _Found()
    for event in events:
        if isinstance(event, Started):
            found.loop_id = event.loop_id
        elif isinstance(event, Forked):
            found.loop_id = event.loop_id
            found.told.clear()  # that was the other loop's
        elif isinstance(event, TurnPrepared):
            if event.compact is not None:
                found.tell(ContextEventType.COMPACTION_STARTING, event.turn, event.compact.tokens)
            found.shortened(event.turn, event.compactions)
        elif isinstance(event, ModelAnswered | ModelFailed):
            if event.around is not None:
                found.shortened(event.turn, event.around.compactions)
            if isinstance(event, ModelAnswered):
                found.answered(event.message, event.purpose)
    return tuple(found.told)


class _Found:
    """What was found so far."""

    def __init__(self) -> None:
        self.loop_id = ""
        self.told: list[ContextEvent] = []
        self._window = 0
        self._summary = ""

    def answered(self, message: Message, purpose: Purpose) -> None:
        """A model has answered: a turn's, which may say how large its window is, or one that summed up."""
        if purpose == "compact":
            self._summary = message.text.strip()
        elif purpose == "turn" and message.usage is not None and message.usage.context_window:
            self._window = message.usage.context_window

    def shortened(self, turn: int, compactions: Iterable[ContextCompaction]) -> None:
        """Something was made shorter."""
        for stats in compactions:
            saved = max(stats.tokens_before - stats.tokens_after, 0)
            if stats.strategy == CompactionStrategy.AUTO_SUMMARY:
                kind, summary = ContextEventType.COMPACTION_COMPLETE, self._summary
            else:
                kind, summary = ContextEventType.GC_COMPLETE, ""
            self.tell(kind, turn, stats.tokens_before, saved, summary)

    def tell(self, kind: ContextEventType, turn: int, tokens: int, saved: int = 0, summary: str = "") -> None:
        """Tell of something; `tokens` were in the context then."""
        self.told.append(
            ContextEvent(
                type=kind,
                loop_id=self.loop_id,
                iteration=turn,
                utilization=tokens / self._window if self._window else 0.0,
                tokens_saved=saved,
                summary=summary,
            )
        )
