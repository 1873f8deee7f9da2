"""An answer as blocks, for channels that show more than text: prose, code, diffs, files."""

from __future__ import annotations

import re

from flyball.core.forms.semstreams import BlockType, ResponseBlock
from flyball.core.messages import Audio, Document, Image, Message

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<lang>[^\s`]*)")
_DIFFS = frozenset(("diff", "patch", "udiff"))


def blocks_of(text: str, message: Message | None = None) -> tuple[ResponseBlock, ...]:
    """The blocks of an answer, and of the files in its message; none where it is prose alone.

    Joined again they say the same. Takes time in proportion to the text.
    """
    blocks: list[ResponseBlock] = []
    prose: list[str] = []
    lines = iter(text.splitlines())
    fenced = False
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            prose.append(line)
            continue
        fenced = True
        _close(prose, blocks)
        mark, lang = found["fence"], found["lang"]
        inside: list[str] = []
        for within in lines:
            bare = within.strip()
            if len(bare) >= len(mark) and not bare.strip(mark[0]):
                break
            inside.append(within)
        kind = BlockType.DIFF if lang.lower() in _DIFFS else BlockType.CODE
        blocks.append(ResponseBlock(type=str(kind), content="\n".join(inside), lang=lang))
    files = _files(message)
    if not (fenced or files):
        return ()
    _close(prose, blocks)
    return (*blocks, *files)


def _close(prose: list[str], blocks: list[ResponseBlock]) -> None:
    """Make a block of the prose so far, if it says anything."""
    text = "\n".join(prose).strip("\n")
    prose.clear()
    if text.strip():
        blocks.append(ResponseBlock(type=str(BlockType.TEXT), content=text))


def _files(message: Message | None) -> list[ResponseBlock]:
    parts = () if message is None else message.parts
    return [
        ResponseBlock(type=str(BlockType.FILE), content=part.url)
        for part in parts
        if isinstance(part, Image | Audio | Document)
    ]
