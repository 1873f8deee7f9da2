"""Reads the tables of a documentation page, so that tests can hold them against the code."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt

from tests.docs.pages import PageError

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(page: str, *header: str) -> list[tuple[str, ...]]:
    """The rows of the one table of a page whose header begins with these cells, without their backticks.

    Raises:
        PageError: there is no such table, or more than one.
    """
    found = [rows[1:] for rows in tables(DOCS / page) if rows[0][: len(header)] == header]
    if len(found) != 1:
        raise PageError(f"{page}: {len(found)} tables have a header that begins with {' | '.join(header)}")
    return found[0]


def tables(path: Path) -> list[list[tuple[str, ...]]]:
    """All tables of a page: lists of rows, the header first."""
    found: list[list[tuple[str, ...]]] = []
    row: list[str] = []
    for token in MarkdownIt().enable("table").parse(path.read_text(encoding="utf-8")):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            row = []
        elif token.type == "inline" and token.level >= 4 and found:
            row.append(token.content.replace("`", ""))
        elif token.type == "tr_close":
            found[-1].append(tuple(row))
    return found


def column(page: str, *header: str) -> list[str]:
    """The first column of a table."""
    return [row[0] for row in table(page, *header)]
