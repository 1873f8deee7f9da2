"""Histories with all that vendors differ about: media, signatures, ids and arguments from elsewhere."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flyball.core.messages import (
    Audio,
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
    data_url,
)

PNG = Image(data_url(b"\x89PNG", "image/png"), detail="low")
WEB = Image("https://example.org/a.png")
WAV = Audio(data_url(b"RIFF", "audio/wav"))
PDF = Document(data_url(b"%PDF", "application/pdf"), title="Report.pdf")
NOTE = Document(data_url("Grüße".encode(), "text/plain"), title="Note")

_words = st.sampled_from(
    ["hi", "two words", "\u6f22\u5b57 \U0001f980", "a\nb", "  spaced  ", "{}", "<think>"]
)
_ids = st.sampled_from(["call_1", "toolu_01", "a b/c", "x" * 100, "\u00e9", "functions.look:0"])
_args = st.sampled_from(["{}", '{"at": 1}', "", '{"cut": "of', "[1]", '{"deep": {"a": [1, null]}}'])


@st.composite
def rich_histories(draw: st.DrawFn, media: tuple[Part, ...] = (PNG, WEB, WAV, PDF, NOTE)) -> list[Message]:
    """Valid histories: each call answered once, by the next message; roles as every provider wants them."""
    said: SearchStrategy[list[Part]] = st.lists(
        st.builds(Text, _words) | st.builds(Retry, _words) | st.sampled_from(media), min_size=1, max_size=3
    )
    thought = st.builds(Thinking, _words, st.sampled_from([None, "c2ln"]))
    made = [Message(Role.SYSTEM, (Text("Be brief."),))] if draw(st.booleans()) else []
    made.append(Message(Role.USER, tuple(draw(said))))
    for number in range(draw(st.integers(0, 4))):
        beside: list[Part] = draw(st.lists(st.builds(Text, _words) | thought, max_size=2))
        if draw(st.booleans()):
            if not any(type(part) is Text for part in beside):
                beside.append(Text("well"))
            made += [Message(Role.ASSISTANT, tuple(beside)), Message(Role.USER, tuple(draw(said)))]
            continue
        calls = [
            ToolCall(f"{draw(_ids)}{number}.{place}", "look", draw(_args))
            for place in range(draw(st.integers(1, 3)))
        ]
        results = [
            ToolResult(
                call.id,
                call.name,
                draw(_words | st.sampled_from([{"a": [1]}, None, 3])),
                draw(st.sampled_from([None, None, "it broke"])),
                images=draw(st.sampled_from([(), (PNG,), (WEB, PNG)])),
            )
            for call in draw(st.permutations(calls))
        ]
        made += [Message(Role.ASSISTANT, (*beside, *calls)), Message(Role.TOOL, tuple(results))]
    return made
