"""What is attached becomes what a model reads, and comes back as what was attached."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import InvalidMessage
from flyball.core.forms.semstreams import Attachment, UserMessage
from flyball.core.messages import Audio, Document, Image, Role, Text
from flyball.orchestrate.channels import attachment_of, message_of, part_of

ENCODED = b64encode(b"some bytes").decode()


def said(**more: Any) -> UserMessage:
    return UserMessage(message_id="1", channel_type="cli", channel_id="here", user_id="ann", **more)


def test_what_is_said_comes_first() -> None:
    message = message_of(
        said(content="Look", attachments=(Attachment(type="url", name="it", url="http://x"),))
    )
    assert message.role is Role.USER
    assert message.parts == (Text("Look"), Text("it: http://x"))


@pytest.mark.parametrize(
    ("attachment", "part"),
    [
        (
            Attachment(type="image", url="https://x/y.png", mime_type="image/png"),
            Image("https://x/y.png", "image/png"),
        ),
        (Attachment(type="image", content=ENCODED), Image(f"data:image/png;base64,{ENCODED}")),
        (
            Attachment(type="file", content=ENCODED, mime_type="audio/wav"),
            Audio(f"data:audio/wav;base64,{ENCODED}", "audio/wav"),
        ),
        (
            Attachment(type="file", name="a.pdf", content=ENCODED, mime_type="application/pdf"),
            Document(f"data:application/pdf;base64,{ENCODED}", "application/pdf", "a.pdf"),
        ),
        (Attachment(type="file", name="a.txt", content="hello"), Text("a.txt\n```\nhello\n```")),
        (Attachment(type="code", name="a.md", content="```x```"), Text("a.md\n````\n```x```\n````")),
        (Attachment(type="file", name="big", url="https://x/y"), Text("big: https://x/y")),
        (
            Attachment(type="file", content=ENCODED, mime_type="Image/PNG; q=1"),
            Image(f"data:image/png;base64,{ENCODED}", "image/png"),
        ),
        (
            Attachment(type="file", name="y", url="https://x/y.pdf", mime_type="application/pdf"),
            Document("https://x/y.pdf", "application/pdf", "y"),
        ),
    ],
)
def test_each_kind_is_what_a_model_reads(attachment: Attachment, part: object) -> None:
    assert part_of(attachment) == part


@pytest.mark.parametrize(
    "attachment",
    [
        Attachment(type="film", content="x"),
        Attachment(type="file", name="empty"),
        Attachment(type="image", content="no base64!"),
        Attachment(type="image", url="file:///etc/passwd"),
        Attachment(type="file", content=ENCODED, mime_type="image/png,<script>"),
        Attachment(type="file", name="a.zip", content="no base64!", mime_type="application/zip"),
        Attachment(type="file", content="no base64!", mime_type="application/octet-stream"),
        Attachment(type="file", name="a.txt", content="hello", size=7),
        Attachment(type="file", name="a.txt", content="hello", size=-5),
        Attachment(type="url", name="x", url="https://x", size=-1),
        Attachment(type="file", name=" ", content="hello"),
        Attachment(type="file", name="a\n```\nb", content="hello"),
    ],
)
def test_what_is_none_is_refused(attachment: Attachment) -> None:
    with pytest.raises(InvalidMessage):
        part_of(attachment)


@given(st.binary(min_size=1, max_size=50), st.text(min_size=1, max_size=50))
def test_a_size_that_is_true_is_taken(data: bytes, text: str) -> None:
    kind = "application/zip"
    Attachment(type="file", content=b64encode(data).decode(), mime_type=kind, size=len(data)).validate()
    Attachment(type="file", content=text, size=len(text.encode())).validate()
    Attachment(type="file", url="https://x/y", size=len(data)).validate()


@pytest.mark.parametrize("kind", ["application/javascript", "application/x-sh", "application/ld+json"])
def test_what_is_text_by_its_kind_stands_as_it_is(kind: str) -> None:
    part = part_of(Attachment(type="file", name="x", content="let x = 1;", mime_type=kind))
    assert isinstance(part, Document)
    back = attachment_of(part)
    assert back is not None
    assert b64decode(back.content) == b"let x = 1;"


@pytest.mark.parametrize("labels", [{"a": 1}, {1: "a"}, {"a": None}, ["a"], "a"])
def test_what_people_say_about_a_message_is_text(labels: Any) -> None:
    with pytest.raises(InvalidMessage, match="metadata"):
        said(content="x", metadata=labels).validate()
    said(content="x", metadata={"a": "1"}).validate()


@given(st.binary(max_size=200), st.sampled_from(["image/png", "audio/wav", "application/pdf"]))
def test_media_come_back_as_they_were(data: bytes, kind: str) -> None:
    encoded = b64encode(data or b"x").decode()
    there = Attachment(type="image" if kind.startswith("image") else "file", content=encoded, mime_type=kind)
    back = attachment_of(part_of(there))
    assert back is not None
    assert (back.type, back.content, back.mime_type) == (there.type, encoded, kind)
    assert part_of(back) == part_of(there)


@pytest.mark.parametrize(
    "url", ["data:text/plain;base64,aGVsbG8gd29ybGQ=", "data:text/plain,hello%20world"], ids=["64", "quoted"]
)
def test_a_text_that_is_a_document_is_read_as_text(url: str) -> None:
    there = attachment_of(Document(url, None, "a.txt"))
    assert there is not None
    assert (there.content, there.size) == ("hello world", 11)
    assert part_of(there) == Text("a.txt\n```\nhello world\n```")


def test_a_document_keeps_its_address() -> None:
    there = attachment_of(Document("https://x/y.pdf", None, "y"))
    assert there is not None
    assert part_of(there) == Document("https://x/y.pdf", "application/pdf", "y")


@pytest.mark.slow
def test_it_takes_time_in_proportion_to_the_text() -> None:
    began = time.perf_counter()
    part_of(Attachment(type="code", content="`" * 2_000_000))
    assert time.perf_counter() - began < 5.0  # it was an hour


def test_text_is_no_attachment() -> None:
    assert attachment_of(Text("words")) is None
