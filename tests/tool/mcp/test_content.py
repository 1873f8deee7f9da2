"""Whatever a server answers is a result that can be recorded, and nothing that a model could read is lost."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from flyball.core.messages import ToolResult
from flyball.tool.mcp.content import returned
from flyball.tool.mcp.secret import hide
from flyball.tool.result import result_of
from tests.tool.contexts import a_call

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
DATA = st.binary(max_size=8).map(lambda data: base64.b64encode(data).decode())
BLOCKS = st.one_of(
    TEXTS.map(lambda text: TextContent(type="text", text=text)),
    DATA.map(lambda data: ImageContent(type="image", data=data, mime_type="image/png")),
    DATA.map(lambda data: AudioContent(type="audio", data=data, mime_type="audio/wav")),
    TEXTS.map(
        lambda text: EmbeddedResource(type="resource", resource=TextResourceContents(uri="x:a", text=text))
    ),
    st.tuples(DATA, st.sampled_from(["image/png", "application/pdf", None])).map(
        lambda both: EmbeddedResource(
            type="resource", resource=BlobResourceContents(uri="x:b", blob=both[0], mime_type=both[1])
        )
    ),
    TEXTS.map(lambda text: ResourceLink(type="resource_link", uri="x:c", name="c", description=text)),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def result(answer: CallToolResult) -> ToolResult:
    made = result_of(a_call(), returned(answer), 1_000_000)
    assert msgspec.json.decode(msgspec.json.encode(made), type=ToolResult) == made
    return made


@given(st.lists(BLOCKS, max_size=5), st.none() | st.dictionaries(TEXTS, JSON, max_size=3), st.booleans())
def test_any_answer_can_be_recorded(blocks: list[Any], structured: Any, is_error: bool) -> None:
    made = result(CallToolResult(content=blocks, structured_content=structured, is_error=is_error))
    assert made.is_error is is_error
    images = [block for block in blocks if block.type == "image"]
    embedded = [
        b for b in blocks if b.type == "resource" and (b.resource.mime_type or "").startswith("image/")
    ]
    if is_error:
        assert made.error
        return
    assert len(made.images) == len(images) + len(embedded)
    for block in blocks:
        if block.type == "text" and structured is None:
            assert block.text in made.text
        if block.type == "resource_link" and block.description.isalnum():
            assert block.description in made.text


@given(st.dictionaries(TEXTS, JSON, min_size=1, max_size=3))
def test_structured_content_is_given_as_it_is(structured: dict[str, Any]) -> None:
    text = TextContent(type="text", text="the same again")
    made = result(CallToolResult(content=[text], structured_content=structured))
    assert made.content == (structured["result"] if list(structured) == ["result"] else structured)


def test_a_failure_that_says_nothing_says_so() -> None:
    made = result(CallToolResult(content=[], is_error=True))
    assert made.error == "the tool failed, and the server does not say why"


@given(st.lists(st.text("abcXYZ-", min_size=6, max_size=12), max_size=3), TEXTS, TEXTS)
def test_secrets_are_hidden_wherever_they_stand(secrets: list[str], before: str, after: str) -> None:
    text = before + " ".join(secrets) + after
    hidden = hide(text, [f"Bearer {secret}" for secret in secrets])
    assert not any(secret in hidden for secret in secrets)
