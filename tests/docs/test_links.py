"""Links between the pages lead somewhere: to a file that is there, and to a heading that is in it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.test_pages import PAGES, ROOT

ELSEWHERE = re.compile(r"[a-z]+:")


def targets(page: Path) -> list[str]:
    """The links of a page that stay in the repository."""
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    links = [child for token in tokens for child in token.children or () if child.type == "link_open"]
    found = [str(link.attrGet("href")) for link in links]
    return [target for target in found if not ELSEWHERE.match(target)]


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in targets(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}: no such heading"
