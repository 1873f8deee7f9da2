"""A response as typed events: the same answer, told as it comes, each event with its number.

    response.created, response.in_progress
        response.output_item.added
            response.content_part.added
                response.output_text.delta, or response.reasoning_text.delta, and at last .done
            response.content_part.done
            response.function_call_arguments.delta, and at last .done
        response.output_item.done
    response.completed, response.incomplete, or response.failed

Calls are done at the end, all of them: their arguments may come side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.openai.response_writing import (
    Frame,
    call_item,
    ending,
    failing,
    message_item,
    reasoning_item,
    reasoning_part,
    text_part,
)
from flyball.adapters.http.openai.said import Arguments, Call, JoinedCall, Said, Thought, Words
from flyball.orchestrate.contracts import SystemResponse

Events = list[dict[str, Any]]


class ResponseEvents:
    """Writes the events of one response."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._number = 0
        self._output: list[dict[str, Any] | None] = []
        """The items, as they are once they are complete."""
        self._open: _Item | None = None
        """The reasoning or the message that is being told."""
        self._calls: list[_Item] = []
        self._answered = False
        """Whether a message or a call has begun."""

    def begin(self) -> Events:
        """The first events."""
        document = self._frame.document("in_progress", [])
        return [self._event(f"response.{name}", response=document) for name in ("created", "in_progress")]

    def write(self, said: Iterable[Said]) -> Events:
        """The events of what is told."""
        events: Events = []
        for one in said:
            match one:
                case Thought():
                    events += self._part("rs", one.text)
                case Words():
                    events += self._part("msg", one.text)
                case Call():
                    events += self._close()
                    events += self._begin_call(one)
                case Arguments():
                    call = self._calls[one.number]
                    call.texts.append(one.text)
                    events.append(self._of(call, "response.function_call_arguments.delta", delta=one.text))
                case _:
                    assert_never(one)
        return events

    def end(self, response: SystemResponse) -> Events:
        """The last events of a request that was answered."""
        events: Events = []
        if not self._answered:  # an answer without a word is one all the same
            events += [*self._close(), *self._open_part("msg")]
        status, more = ending(response)
        last = "incomplete" if status == "incomplete" else "completed"
        events += self._close("completed" if self._calls else last)
        for call in self._calls:
            events += self._close_call(call, last if call is self._calls[-1] else "completed")
        output = [item for item in self._output if item is not None]
        document = self._frame.document(status, output, **more)
        return [*events, self._event(f"response.{status}", response=document)]

    def fail(self, refused: Refused, response: SystemResponse | None = None) -> Events:
        """The last event of a request that failed on the way."""
        output = [item for item in self._output if item is not None]
        document = self._frame.document("failed", output, **failing(refused, response))
        return [self._event("response.failed", response=document)]

    # Reasoning and text

    def _part(self, kind: str, text: str) -> Events:
        events: Events = []
        if self._open is None or self._open.kind != kind:
            events = [*self._close(), *self._open_part(kind)]
        item = self._open
        assert item is not None
        item.texts.append(text)
        if kind == "msg":
            event = self._of(item, "response.output_text.delta", content_index=0, delta=text, logprobs=[])
        else:
            event = self._of(item, "response.reasoning_text.delta", content_index=0, delta=text)
        return [*events, event]

    def _open_part(self, kind: str) -> Events:
        self._open = item = self._item(kind)
        if kind == "msg":
            made, part = message_item(item.id, None, "in_progress"), text_part("")
        else:
            made, part = reasoning_item(item.id, "", "in_progress"), reasoning_part("")
        return [
            self._event("response.output_item.added", output_index=item.index, item=made),
            self._of(item, "response.content_part.added", content_index=0, part=part),
        ]

    def _close(self, status: str = "completed") -> Events:
        item, self._open = self._open, None
        if item is None:
            return []
        text = "".join(item.texts)
        if item.kind == "msg":
            made, part = message_item(item.id, text, status), text_part(text)
            done = self._of(item, "response.output_text.done", content_index=0, text=text, logprobs=[])
        else:
            made, part = reasoning_item(item.id, text, status), reasoning_part(text)
            done = self._of(item, "response.reasoning_text.done", content_index=0, text=text)
        self._output[item.index] = made
        return [
            done,
            self._of(item, "response.content_part.done", content_index=0, part=part),
            self._event("response.output_item.done", output_index=item.index, item=made),
        ]

    # Calls

    def _begin_call(self, call: Call) -> Events:
        item = self._item("fc")
        item.call = call
        self._calls.append(item)
        made = call_item(item.id, JoinedCall(call.id, call.name), "in_progress")
        return [self._event("response.output_item.added", output_index=item.index, item=made)]

    def _close_call(self, item: _Item, status: str) -> Events:
        arguments = "".join(item.texts)
        assert item.call is not None
        made = call_item(item.id, JoinedCall(item.call.id, item.call.name, arguments), status)
        self._output[item.index] = made
        return [
            self._of(item, "response.function_call_arguments.done", arguments=arguments),
            self._event("response.output_item.done", output_index=item.index, item=made),
        ]

    def _item(self, kind: str) -> _Item:
        index = len(self._output)
        self._output.append(None)
        self._answered = self._answered or kind != "rs"
        return _Item(kind, index, self._frame.item_id(kind, index))

    def _of(self, item: _Item, kind: str, **more: Any) -> dict[str, Any]:
        return self._event(kind, item_id=item.id, output_index=item.index, **more)

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        event = {"type": kind, "sequence_number": self._number, **more}
        self._number += 1
        return event


class _Item:
    """An item that is being told."""

    __slots__ = ("call", "id", "index", "kind", "texts")

    def __init__(self, kind: str, index: int, item_id: str) -> None:
        self.kind = kind
        self.index = index
        self.id = item_id
        self.texts: list[str] = []
        self.call: Call | None = None
