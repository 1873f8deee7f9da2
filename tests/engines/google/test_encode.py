"""What we send: what Google takes, in the order that it wants, with nothing lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import ToolNotFound, UserError
from flyball.core.messages import (
    Document,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.engines.google.contents import UNSIGNED, history_of
from flyball.engines.google.encode import Asking, generate_body
from flyball.engines.google.generations import generation_of
from flyball.engines.google.marks import mark, marked
from flyball.inference.request import OutputObject, Request
from tests.engines.google.histories import PNG, WEB, google_histories
from tests.engines.google.sdk import as_sdk_sends, plain
from tests.histories import histories

NEW, OLD = generation_of("gemini-3.8-flash"), generation_of("gemini-2.5-flash")
SIX = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOK = ToolDefinition("look", SIX, "Look.")
DONE = ToolDefinition("done", SIX, kind=ToolKind.OUTPUT)


def body_of(request: Request, *, vertex: bool = False, old: bool = False, **safety: str) -> dict[str, Any]:
    """The body, as it is on the wire."""
    made = generate_body(request, Asking(OLD if old else NEW, vertex, safety))
    return msgspec.json.decode(msgspec.json.encode(made))


def parts_of(*messages: Message, old: bool = False) -> list[Any]:
    """The parts of the last turn."""
    return history_of(messages, OLD if old else NEW).contents[-1]["parts"]


def keeps_the_rules(contents: Sequence[dict[str, Any]]) -> None:
    """Turns alternate, none is empty, and calls are answered by as many responses, in their order."""
    for before, after in pairwise(contents):
        assert before["role"] != after["role"]
    assert contents[0]["role"] == "user"
    for at, content in enumerate(contents):
        parts = content["parts"]
        assert parts
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert content["role"] == "model" or not calls
        assert content["role"] == "user" or not responses
        if not calls:
            continue
        answers = contents[at + 1]["parts"][: len(calls)]
        assert [part["functionResponse"]["name"] for part in answers] == [call["name"] for call in calls]
        assert [part["functionResponse"].get("id") for part in answers] == [call.get("id") for call in calls]
        assert not any("functionResponse" in part for part in contents[at + 1]["parts"][len(calls) :])


@given(google_histories() | histories(), st.booleans(), st.booleans())
def test_any_history_is_what_google_takes(history: list[Message], vertex: bool, old: bool) -> None:
    request = Request(tuple(history), (LOOK,), ModelSettings(temperature=0.1, max_tokens=9, stop=("x",)))
    body = body_of(request, vertex=vertex, old=old)
    keeps_the_rules(body["contents"])
    assert as_sdk_sends(body, vertex=vertex) == plain(body)


@given(google_histories())
def test_what_gemini_left_goes_back_in_its_place(history: list[Message]) -> None:
    sent = history_of(history, OLD).contents
    signed = [
        part["thoughtSignature"] for turn in sent for part in turn["parts"] if "thoughtSignature" in part
    ]
    kept: list[str] = []
    for message in history:
        for part in message.parts:
            if isinstance(part, Thinking):
                if marked(part.provider_data) is not None and part.signature:
                    kept.append(part.signature)
            elif isinstance(part, ToolCall):
                kept += (marked(part.provider_data) or {}).get("thoughtSignature", "").split()
            elif isinstance(part, Text):
                kept += (marked(part.extra) or {}).get("thoughtSignature", "").split()
    assert signed == kept


def test_results_follow_the_order_of_the_calls_and_have_the_ids_that_gemini_gave() -> None:
    asked = assistant(
        "", ToolCall("a", "look", provider_data=mark(id="g1")), ToolCall("b", "find"), ToolCall("c", "look")
    )
    results = [
        ToolResult("c", "look", 3),
        ToolResult("b", "find", None, "broke"),
        ToolResult("a", "look", {"x": 1}),
    ]
    assert parts_of(user("go"), asked, tool_results(results)) == [
        {"functionResponse": {"name": "look", "response": {"output": {"x": 1}}, "id": "g1"}},
        {"functionResponse": {"name": "find", "response": {"error": "broke"}}},
        {"functionResponse": {"name": "look", "response": {"output": 3}}},
    ]


def test_images_of_results_stand_in_them_or_follow() -> None:
    asked = assistant("", ToolCall("a", "look"))
    shown = (user("go"), asked, tool_results([ToolResult("a", "look", "seen", images=(PNG, WEB))]))
    inline = {"inlineData": {"mimeType": "image/png", "data": "iVBOR//+"}}
    by_address = {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}
    new, old = parts_of(*shown), parts_of(*shown, old=True)
    assert new[0]["functionResponse"]["parts"] == [inline]
    assert new[1:] == [{"text": "Shown by look:"}, by_address]
    assert "parts" not in old[0]["functionResponse"]
    assert old[1:] == [{"text": "Shown by look:"}, inline, by_address]
    vertex = history_of(shown, NEW, vertex=True).contents[-1]["parts"]
    assert vertex[0]["functionResponse"]["parts"] == [inline, by_address]


def test_system_messages_are_the_instruction_or_are_told_in_their_place() -> None:
    history = (system("One."), user("a"), assistant("b"), system("Two."), user("c"))
    body = body_of(Request(history))
    assert body["systemInstruction"] == {"parts": [{"text": "One."}], "role": "user"}
    assert body["contents"][-1]["parts"] == [{"text": "System message:\nTwo."}, {"text": "c"}]


def test_a_turn_of_foreign_thoughts_alone_is_left_out() -> None:
    history = (user("a"), Message(Role.ASSISTANT, (Thinking("hm", "claude's"),)), user("b"))
    assert history_of(history, NEW).contents == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


def test_what_another_model_began_is_gone_on_with() -> None:
    def sent(*messages: Message, old: bool = False) -> list[Any]:
        turns = history_of(messages, OLD if old else NEW).contents
        return [
            part.get("thoughtSignature") for turn in turns for part in turn["parts"] if "functionCall" in part
        ]

    def asked(*names: str) -> tuple[Message, Message]:
        calls = [
            ToolCall(name, "look", provider_data=mark(thoughtSignature="aaaa") if name == "g" else None)
            for name in names
        ]
        return assistant("", *calls), tool_results([ToolResult(name, "look") for name in names])

    assert sent(user("a"), *asked("x", "y"), *asked("g", "z")) == [UNSIGNED, None, "aaaa", None]
    assert sent(user("a"), *asked("x"), user("b"), *asked("y")) == [None, UNSIGNED]
    assert sent(user("a"), *asked("x"), old=True) == [None]


def test_a_document_has_its_title_before_it() -> None:
    told = parts_of(user([Document("data:text/plain,hi", title="Note")]))
    assert told == [{"text": "Note:"}, {"inlineData": {"mimeType": "text/plain", "data": "aGk="}}]


def test_vertex_is_told_the_type_of_a_file() -> None:
    told = history_of([user([Image("https://example.org/x")])], NEW, vertex=True).contents[0]["parts"]
    assert told == [{"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/x"}}]


@pytest.mark.parametrize("url", ["data:nothing", "data:,x"])
def test_data_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError):
        parts_of(user([Image(url)]))


@pytest.mark.parametrize(
    "message", [Message(Role.USER, (ToolCall("a", "look"),)), Message(Role.ASSISTANT, (Document("a.pdf"),))]
)
def test_parts_that_a_role_cannot_have_are_refused(message: Message) -> None:
    with pytest.raises(UserError, match="google takes no"):
        parts_of(user("a"), message)


_CHOICES: list[tuple[ToolChoice | None, bool, list[str], dict[str, Any] | None]] = [
    (None, True, ["look", "done"], None),
    (None, False, ["look", "done"], {"mode": "ANY"}),
    (ToolChoice("auto"), True, ["look", "done"], None),
    (ToolChoice("required"), True, ["look", "done"], {"mode": "ANY"}),
    (
        ToolChoice("function", "look"),
        True,
        ["look", "done"],
        {"mode": "ANY", "allowedFunctionNames": ["look"]},
    ),
    (ToolChoice("none"), False, ["look", "done"], {"mode": "ANY", "allowedFunctionNames": ["done"]}),
    (ToolChoice("none"), True, ["done"], None),
]


@pytest.mark.parametrize(("choice", "text", "declared", "config"), _CHOICES)
def test_tool_choice(
    choice: ToolChoice | None, text: bool, declared: list[str], config: dict[str, Any] | None
) -> None:
    body = body_of(Request((user("a"),), (LOOK, DONE), tool_choice=choice, allows_text=text))
    assert [tool["name"] for tool in body["tools"][0]["functionDeclarations"]] == declared
    assert body.get("toolConfig", {}).get("functionCallingConfig") == config
    assert as_sdk_sends(body) == plain(body)


def test_no_tool_at_all_is_none() -> None:
    body = body_of(Request((user("a"),), (LOOK,), tool_choice=ToolChoice("none")))
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    with pytest.raises(ToolNotFound):
        body_of(Request((user("a"),), (LOOK,), tool_choice=ToolChoice("function", "nothing")))


def test_a_tool_without_parameters_describes_none() -> None:
    bare = ToolDefinition("now", {"type": "object", "properties": {}, "additionalProperties": False})
    body = body_of(Request((user("a"),), (bare,)))
    assert body["tools"] == [{"functionDeclarations": [{"name": "now"}]}]


def test_output_is_held_to_its_schema() -> None:
    output = OutputObject(SIX, "place", "A place.")
    config = body_of(Request((user("a"),), output=output))["generationConfig"]
    assert config == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {**SIX, "description": "A place."},
    }


def test_settings() -> None:
    settings = ModelSettings(max_tokens=5, temperature=0.0, top_p=0.5, seed=7, stop=("a", "b"))
    body = body_of(Request((user("a"),), settings=settings), HARM_CATEGORY_HARASSMENT="BLOCK_NONE")
    assert body["generationConfig"] == {
        "temperature": 0.0, "topP": 0.5, "maxOutputTokens": 5, "seed": 7, "stopSequences": ["a", "b"]
    }  # fmt: skip
    assert body["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert as_sdk_sends(body) == plain(body)


def test_options_are_laid_over_everything() -> None:
    settings = ModelSettings(
        max_tokens=5, options={"generationConfig": {"topK": 4, "maxOutputTokens": 6}, "labels": {"a": "b"}}
    )
    body = body_of(Request((user("a"),), settings=settings))
    assert body["generationConfig"] == {"maxOutputTokens": 6, "topK": 4}
    assert body["labels"] == {"a": "b"}


def test_what_is_cached_is_not_sent_again() -> None:
    settings = ModelSettings(options={"cachedContent": "cachedContents/1"})
    body = body_of(Request((system("s"), user("a")), (LOOK,), settings, ToolChoice("required")))
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "cachedContent": "cachedContents/1",
    }
