"""Hypothesis strategies for whole histories: all that a loop can come to send, and nothing that it cannot."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flyball.core.messages import (
    Document,
    Image,
    Message,
    Part,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_IMAGE = Image("https://example.org/a.png")
_words = st.sampled_from(["hi", "two words", "漢字", "x" * 50, "a line\nand another " * 5])
_said: SearchStrategy[list[Part]] = st.lists(
    st.builds(Text, _words) | st.builds(Retry, _words) | st.sampled_from([_IMAGE, Document("a.pdf")]),
    min_size=1,
    max_size=2,
)
_answers: SearchStrategy[list[Part]] = st.lists(
    st.builds(Text, _words) | st.builds(Thinking, _words), min_size=1, max_size=2
)
_beside: SearchStrategy[list[Part]] = st.lists(
    st.builds(Text, _words) | st.builds(Thinking, _words), max_size=1
)
_images = st.sampled_from([(), (), (_IMAGE,)])
_errors = st.sampled_from([None, None, "it broke"])


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> list[Message]:
    """Histories that every provider takes, and that the model can answer: `check_history(complete=True)`."""
    made: list[Message] = []
    if draw(st.booleans()):
        made.append(Message(Role.SYSTEM, (Text("Be brief."),)))
    made.append(Message(Role.USER, tuple(draw(_said))))
    while len(made) < most and draw(st.booleans()):
        if draw(st.booleans()):
            made.append(Message(Role.ASSISTANT, tuple(draw(_answers))))
            made.append(Message(Role.USER, tuple(draw(_said))))
            continue
        calls = [
            ToolCall(f"c{len(made)}.{number}", "look", draw(st.sampled_from(["{}", '{"at": 1}'])))
            for number in range(draw(st.integers(1, 3)))
        ]
        made.append(Message(Role.ASSISTANT, (*draw(_beside), *calls)))
        results = [
            ToolResult(call.id, call.name, draw(_words), draw(_errors), images=draw(_images))
            for call in draw(st.permutations(calls))
        ]
        made.append(Message(Role.TOOL, tuple(results)))
        if draw(st.booleans()) and draw(st.booleans()):
            made.append(Message(Role.USER, tuple(draw(_said))))
    return made
