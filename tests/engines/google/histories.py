"""Histories with all that Gemini makes of them: media, signatures, ids and arguments from elsewhere."""

from __future__ import annotations

from base64 import b64encode

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
from flyball.engines.google.marks import mark

PNG = Image(data_url(b"\x89PNG\xff\xfe", "image/png"), detail="low")
WEB = Image("https://example.org/a.png")
NAMELESS = Image("https://example.org/picture")
WAV = Audio(data_url(b"RIFF", "audio/wav"))
PDF = Document(data_url(b"%PDF", "application/pdf"), title="Report.pdf")
NOTE = Document("data:text/plain,Gr%C3%BC%C3%9Fe")
STORED = Document("gs://bucket/a.pdf")

words = st.sampled_from(["hi", "two words", "漢字 🦀", "a\nb", "  spaced  ", "{}", "<think>"])
signatures = st.binary(min_size=1, max_size=8).map(lambda made: b64encode(made).decode())
_ids = st.sampled_from(["call_1", "toolu_01", "a b/c", "x" * 100, "é", "functions.look:0"])
_args = st.sampled_from(["{}", '{"at": 1}', "", '{"cut": "of', "[1]", '{"deep": {"a": [1, null, 1.5]}}'])
_contents = words | st.sampled_from([{"a": [1]}, {"output": 1, "error": 2}, [1, None], None, 3, False])


def _thoughts() -> SearchStrategy[Part]:
    """Gemini's own, signatures that came alone, parts that nobody knows, and another vendor's."""
    code = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
    return st.one_of(
        st.builds(Thinking, words, st.none() | signatures, st.just(mark(thought=True))),
        st.builds(Thinking, st.just(""), signatures, st.just(mark(thought=False))),
        st.builds(Thinking, st.just(""), st.none() | signatures, st.just(mark(part=code))),
        st.builds(Thinking, words, st.none() | st.just("not base64!")),
    )


def _texts() -> SearchStrategy[Part]:
    signed = signatures.map(lambda signature: mark(thoughtSignature=signature))
    return st.builds(Text, words | st.just("")) | st.builds(Text, words, signed)


@st.composite
def _calls(draw: st.DrawFn, turn: int) -> list[ToolCall]:
    made: list[ToolCall] = []
    for place in range(draw(st.integers(1, 3))):
        given = draw(st.none() | st.just(f"g{turn}{place}"))
        signature = draw(st.none() | signatures)
        data = draw(st.sampled_from([mark(id=given, thoughtSignature=signature), {"other": {"id": "no"}}]))
        made.append(ToolCall(f"{draw(_ids)}{turn}.{place}", "look", draw(_args), provider_data=data))
    return made


@st.composite
def google_histories(draw: st.DrawFn) -> list[Message]:
    """Valid histories: each call answered once, by the next message; roles as every provider wants them."""
    media = st.sampled_from([PNG, WEB, NAMELESS, WAV, PDF, NOTE, STORED])
    said: SearchStrategy[list[Part]] = st.lists(
        st.builds(Text, words | st.just("")) | st.builds(Retry, words) | media, min_size=1, max_size=3
    )
    made = [Message(Role.SYSTEM, (Text("Be brief."),))] if draw(st.booleans()) else []
    made.append(Message(Role.USER, tuple(draw(said))))
    for turn in range(draw(st.integers(0, 4))):
        beside = draw(st.lists(_texts() | _thoughts() | st.sampled_from([PNG, WAV]), max_size=3))
        if draw(st.booleans()):
            made.append(Message(Role.ASSISTANT, tuple(beside or [Text("well")])))
            if draw(st.booleans()):
                made.append(Message(Role.SYSTEM, (Text("Be briefer."),)))
            made.append(Message(Role.USER, tuple(draw(said))))
            continue
        calls = draw(_calls(turn))
        results = [
            ToolResult(
                call.id,
                call.name,
                draw(_contents),
                draw(st.sampled_from([None, None, "it broke"])),
                images=draw(st.sampled_from([(), (PNG,), (WEB, PNG), (NAMELESS,)])),
            )
            for call in draw(st.permutations(calls))
        ]
        made += [Message(Role.ASSISTANT, (*beside, *calls)), Message(Role.TOOL, tuple(results))]
        if draw(st.booleans()) and draw(st.booleans()):
            made.append(Message(Role.USER, tuple(draw(said))))
    return made
