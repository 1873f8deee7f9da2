"""Markdown, as models write it, set in lines: headings, lists, quotes, code, bold. Pure.

It is read line by line, and each character is looked at so many times and no more: what it takes grows with
the text, whatever is in it, and an answer that is half there is drawn like one that is whole. Only signs are
left out (`**`, `#`, fences); no letter is, and what is no Markdown after all stays as it was written. Links
stay as they are, so that everybody sees where they lead.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells

from flyball.adapters.tui.lines import Line, Look, styled
from flyball.adapters.tui.wrapping import wrapped
from flyball.core.harmless import harmless

_TAB = 4
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r" {0,3}#{1,6} +(?=\S)")
_RULE = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,}) *$")
_QUOTE = re.compile(r"(?: {0,3}> ?)+")
_ITEM = re.compile(r"( *)([-*+]|[0-9]{1,9}[.)]) +(?=\S)")
_SIGN = re.compile(r"`+|\*\*")
_WORD = re.compile(r"\S+\s*|\s+")
_BAR: tuple[str, Look] = ("│ ", "dim")
_LONGEST_RULE = 40


def set_in_lines(text: str, width: int, limit: int) -> list[Line]:
    """The first `limit` characters of a text of others, harmless, as lines of at most `width` cells."""
    width = max(width, 8)
    lines: list[Line] = []
    fence = ""
    for line in harmless(text[:limit]).expandtabs(_TAB).split("\n"):
        mark = _FENCE.match(line)
        if fence and mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif fence:
            lines.extend([(_BAR, (part, "code")) for part in _chopped(line, width - 2)])
        elif mark:
            fence = mark[1]
            lines += styled(_chopped(f"│ {mark[2].strip()}".rstrip(), width), "dim")
        else:
            lines += _block(line, width)
    if len(text) > limit:
        lines += styled(wrapped(f"… {len(text) - limit:,} characters more", width, 100), "dim")
    return lines


def _chopped(line: str, width: int) -> list[str]:
    """A line of code as several that fit, broken wherever it is full."""
    return chop_cells(line, width) or [""]


def _block(line: str, width: int) -> Iterator[Line]:
    """A line that is no code: a heading, a rule, an item, a quote, or just text."""
    look: Look = "plain"
    before = rest = ""
    if quote := _QUOTE.match(line):
        before = rest = "▎ " * min(quote[0].count(">"), width // 8)
        line, look = line[quote.end() :], "dim"
    if _RULE.match(line):
        yield ((f"{before}{'─' * min(width - len(before), _LONGEST_RULE)}", "dim"),)
        return
    if heading := _HEADING.match(line):
        line, look = line[heading.end() :], "strong"
    elif item := _ITEM.match(line):
        sign = "•" if item[2] in "-*+" else item[2]
        before += f"{' ' * min(len(item[1]), width // 4)}{sign} "
        rest = rest.ljust(len(before))
        line = line[item.end() :]
    pieces = _inline(line, look)
    for number, text in enumerate(_folded(pieces, width - len(before))):
        yield ((rest if number else before, "dim"), *text)


def _inline(line: str, look: Look) -> list[tuple[str, Look]]:
    """The pieces of a line: `code`, **bold**, and what is neither."""
    signs = list(_SIGN.finditer(line))
    closing: dict[str, deque[int]] = defaultdict(deque)
    for number, sign in enumerate(signs):
        closing[sign[0]].append(number)
    pieces: list[tuple[str, Look]] = []
    at = number = 0
    bold: int | None = None
    while number < len(signs):
        sign = signs[number]
        pieces.append((line[at : sign.start()], look))
        at, others = sign.end(), closing[sign[0]]
        while others and others[0] <= number:
            others.popleft()
        if sign[0] == "**":
            if bold is not None and _may_close(line, sign):
                pieces[bold:] = [
                    (text, "strong" if is_as == look else is_as) for text, is_as in pieces[bold:]
                ]
                pieces[bold], bold = ("", look), None
            else:
                bold = len(pieces) if bold is None and _may_open(line, sign) else bold
                pieces.append((sign[0], look))
        elif others:
            number = others[0]
            pieces.append((line[at : signs[number].start()], "code"))
            at = signs[number].end()
        else:
            pieces.append((sign[0], look))
        number += 1
    return [*pieces, (line[at:], look)]


def _may_open(line: str, sign: re.Match[str]) -> bool:
    """Whether bold may begin here: before a word, and not within one (`2**3`)."""
    before, after = _beside(line, sign)
    return bool(after.strip()) and not (before.isascii() and before.isalnum())


def _may_close(line: str, sign: re.Match[str]) -> bool:
    """Whether bold may end here: after a word, and not within one."""
    before, after = _beside(line, sign)
    return bool(before.strip()) and not (after.isascii() and after.isalnum())


def _beside(line: str, sign: re.Match[str]) -> tuple[str, str]:
    begin, end = sign.span()
    return line[max(begin - 1, 0) : begin], line[end : end + 1]


def _folded(pieces: list[tuple[str, Look]], width: int) -> Iterator[Line]:
    """The pieces as lines that fit."""
    text = "".join([piece for piece, _ in pieces])
    at = number = 0
    for begin, end in _ranges(text, width):
        line: list[tuple[str, Look]] = []
        while number < len(pieces):
            piece, look = pieces[number]
            part = piece[max(begin - at, 0) : end - at]
            if part:
                line.append((part, look))
            if at + len(piece) > end:
                break  # the rest of it is for the next line
            at, number = at + len(piece), number + 1
        yield tuple(line)


def _ranges(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where the lines of a text begin and end: after spaces, and within words only where one is too long."""
    begin = taken = 0
    for found in _WORD.finditer(text):
        length = cell_len(found[0].rstrip())
        if taken and taken + length > width:
            yield begin, begin + len(text[begin : found.start()].rstrip())
            begin, taken = found.start(), 0
        if length > width:
            for part in chop_cells(text[begin : found.end()].rstrip(), width)[:-1]:
                yield begin, begin + len(part)
                begin += len(part)
        taken = cell_len(text[begin : found.end()])
    yield begin, begin + len(text[begin:].rstrip())
