"""What the documentation shows, runs and prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md")
    for page in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path) -> None:
    run_page(page)
