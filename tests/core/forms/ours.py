"""Our own messages, as far as the flat forms and gollem's can hold them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.core.usage import Usage
from tests.core.forms.documents import filled_texts, json_objects, json_values, texts
from tests.strategies import counts, maybe, moments

extras: SearchStrategy[dict[str, Any] | None] = maybe(
    st.dictionaries(st.sampled_from(["x", "x_note", "ключ"]), json_values, min_size=1, max_size=2)
)
ids = st.sampled_from("abcdef")


def calls(**more: SearchStrategy[Any]) -> SearchStrategy[ToolCall]:
    """Calls whose arguments are written as a flat form writes them."""
    compact = json_objects.map(lambda arguments: msgspec.json.encode(arguments).decode())
    broken = st.sampled_from(["{", "[1]", '{"a": "cut'])
    return st.builds(ToolCall, ids, filled_texts, compact | broken, extra=extras, **more)


@st.composite
def flat_turn(draw: st.DrawFn, call: SearchStrategy[ToolCall], thinks: bool) -> list[Message]:
    """An assistant's message, and one that answers its calls."""
    asked = draw(st.lists(call, max_size=3, unique_by=lambda one: one.id))
    thought: list[Part] = [Thinking(draw(filled_texts))] if thinks and draw(st.booleans()) else []
    said: list[Part] = [Text(draw(filled_texts))] if not (asked or thought) or draw(st.booleans()) else []
    extra, name = draw(extras), draw(maybe(filled_texts))
    turn = [Message(Role.ASSISTANT, (*thought, *said, *asked), name=name, extra=extra)]
    if asked:
        answered = draw(st.permutations(asked))
        results = [ToolResult(one.id, draw(texts), draw(texts), extra=draw(extras)) for one in answered]
        turn.append(Message(Role.TOOL, tuple(results)))
    return turn


def flat_histories(call: SearchStrategy[ToolCall], *, thinks: bool) -> SearchStrategy[list[Message]]:
    """Conversations that a flat form can hold."""
    said = st.builds(
        Message,
        role=st.sampled_from([Role.SYSTEM, Role.USER]),
        parts=st.tuples(st.builds(Text, texts)),
        name=maybe(filled_texts),
        extra=extras,
    ).map(lambda message: [message])
    turns = st.lists(said | flat_turn(call, thinks), max_size=4)
    return turns.map(lambda several: [message for turn in several for message in turn])


_mime = maybe(filled_texts)
_images = st.builds(Image, texts, _mime, st.sampled_from([None, "auto", "low", "high"]), extras)
_results = st.builds(
    ToolResult,
    call_id=texts,
    name=texts,
    content=json_values,
    images=st.lists(_images, max_size=2).map(tuple),
    extra=extras,
) | st.builds(
    ToolResult,
    call_id=filled_texts,
    name=texts,
    content=texts,
    status=st.just(ResultKind.RETRY),
    extra=extras,
)
_GOLLEM: dict[Role, SearchStrategy[Part]] = {
    Role.SYSTEM: st.builds(Text, texts, extras),
    Role.USER: st.one_of(
        st.builds(Text, texts, extras),
        st.builds(Retry, texts, extras),
        _images,
        st.builds(Audio, texts, _mime, extras),
        st.builds(Document, texts, _mime, maybe(filled_texts), extras),
    ),
    Role.ASSISTANT: st.one_of(
        st.builds(Text, texts, extras),
        st.builds(Thinking, texts, maybe(filled_texts), extra=extras),
        st.builds(
            ToolCall,
            texts,
            texts,
            texts,
            provider_data=maybe(st.dictionaries(texts, texts, min_size=1, max_size=2)),
            extra=extras,
        ),
    ),
    Role.TOOL: _results,
}


def _gollem_messages(role: Role) -> SearchStrategy[Message]:
    about: dict[str, SearchStrategy[Any]] = {"extra": extras, "timestamp": maybe(moments)}
    if role is Role.ASSISTANT:
        about["usage"] = maybe(
            st.builds(Usage, input_tokens=st.integers(1, 99), cache_read_tokens=counts, extra=extras)
        )
        about["model"] = maybe(filled_texts)
        about["finish_reason"] = maybe(st.sampled_from(FinishReason))
    parts = st.lists(_GOLLEM[role], min_size=1, max_size=3).map(tuple)
    return st.builds(Message, role=st.just(role), parts=parts, **about)


gollem_histories = st.lists(st.one_of([_gollem_messages(role) for role in Role]), max_size=5)
"""Conversations that gollem's form can hold, in any order."""
