"""The words of a message, as a person is shown it. What a model reads is in its parts, and is none of this.

What somebody says has a blank line between its parts: the words, and each file that goes along. Images, sound
and documents are named. What a model says in several parts is one text.
"""

from __future__ import annotations

from flyball.core.messages import Audio, Document, Image, Message, Part, Role, Text


def words_of(message: Message) -> str:
    """What is shown of a message: its texts, and what its images, sounds and documents are."""
    if message.role is Role.ASSISTANT:
        told = [message.text, *[_named(part) for part in message.parts if type(part) is not Text]]
    else:
        told = [part.text if isinstance(part, Text) else _named(part) for part in message.parts]
    return "\n\n".join([words for one in told if (words := one.strip("\n"))])


def _named(part: Part) -> str:
    """A medium in brackets: what it is, and its title or address; nothing for what is no medium."""
    if not isinstance(part, Image | Audio | Document):
        return ""
    title = part.title if isinstance(part, Document) else None
    head, _, _ = part.url.partition(",")
    is_inline = head.startswith("data:")
    kind = part.mime_type or (head[5:].partition(";")[0] if is_inline else "")
    what = [type(part).__name__.lower(), title or "", kind, "" if is_inline else part.url]
    return f"[{' '.join([one for one in what if one])}]"
