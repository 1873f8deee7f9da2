"""The texts of a message's parts: which there are, and how they are read together.

Who is sent several parts reads them as one text, so what stands in two of them is looked for, too: in each
part, and in neighbours together, as they follow each other and with a space between.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

from msgspec.structs import replace

from flyball.core.messages import Document, Part, Retry, Text, ToolResult
from flyball.validate.filters.violation import Change, changed

JOINTS = ("", " ")
"""What is read between neighbouring parts."""
_READABLE = re.compile(
    r"text/|[^;]*[/+.-](?:json|json5|jsonl|ndjson|json-seq|jsonlines|xml|yaml|toml|csv|javascript|sql)\b"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""What stands in no text."""
_PDF = b"%PDF-"


def texts_of(part: Part) -> tuple[str, ...]:
    """What is to be read in a part: what was said, what a tool gave, what is wrong with an answer (which
    may repeat any of it), a document's title and its text.

    A document's text is read where it comes along in a data: address, and is text by its type (`text/…`,
    JSON, XML, YAML and what is made of them), or by what it holds; that of a PDF is not.
    """
    if isinstance(part, Text | ToolResult | Retry):
        return (part.text,)
    if isinstance(part, Document):
        return part.title or "", _said_in(part) or ""
    return ()


def saying(part: Part, texts: Sequence[str]) -> Part:
    """The part with other texts, which are as many as `texts_of` gives; the same one if they are the same."""
    if tuple(texts) == texts_of(part):
        return part
    match part:
        case Text() | Retry():
            return replace(part, text=texts[0])
        case ToolResult():
            return replace(part, error=texts[0]) if part.is_error else replace(part, content=texts[0])
        case Document():
            url = part.url if texts[1] == (_said_in(part) or "") else _holding(part.url, texts[1])
            return replace(part, title=texts[0] or part.title, url=url)
        case _:
            return part


def neighbours(parts: Sequence[Part]) -> list[list[int]]:
    """Which parts are read as one text: rows of what was said. Each of the others is by itself."""
    rows: list[list[int]] = []
    before: Part | None = None
    for number, part in enumerate(parts):
        if isinstance(part, Text) and isinstance(before, Text):
            rows[-1].append(number)
        else:
            rows.append([number])
        before = part
    return rows


def spread(texts: Sequence[str], joint: str, changes: Sequence[Change]) -> list[str]:
    """Texts with what was changed in them as they are joined; what is in two is put in the first."""
    made, start, at, told = list[str](), 0, 0, False
    for text in texts:
        stop, own = start + len(text), list[Change]()
        while at < len(changes) and changes[at].start < stop:
            change = changes[at]
            first, last = max(change.start, start), min(change.stop, stop)
            if first < last:
                own.append(Change(first - start, last - start, "" if told else change.text))
                told = True
            if change.stop > stop:
                break
            at, told = at + 1, False
        made.append(changed(text, own))
        start = stop + len(joint)
    return made


def _said_in(part: Document) -> str | None:
    """The text of a document that brings it along, and is text by its type or to look at; else None."""
    head, comma, body = part.url.partition(",")
    kind = (part.mime_type or head[5:].partition(";")[0] or "text/plain").strip().lower()
    if head[:5].lower() != "data:" or not comma:
        return None
    try:
        data = b64decode(body) if _in_base64(head) else unquote_to_bytes(body)
    except (Error, ValueError):
        return None  # nobody can read it: an engine says so
    if _READABLE.match(kind):
        return data.decode("utf-8", "replace")
    return None if data.startswith(_PDF) else _to_look_at(data)


def _to_look_at(data: bytes) -> str | None:
    """What data says, if it is text; None if it is anything else."""
    try:
        said = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(said) else said


def _holding(url: str, text: str) -> str:
    """The address of a document, with another text in it."""
    head = url.partition(",")[0]
    return f"{head},{b64encode(text.encode()).decode('ascii') if _in_base64(head) else quote(text)}"


def _in_base64(head: str) -> bool:
    return "base64" in [one.strip().lower() for one in head.split(";")[1:]]
