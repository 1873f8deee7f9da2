"""What is looked at every few seconds is looked at at once: no test waits for a clock."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.adapters.tui.runs._EVERY", 0.25)
    monkeypatch.setattr("flyball.adapters.tui.runs._TYPING", 0.0)
    monkeypatch.setattr("flyball.adapters.tui.following._REST", 0.02)
    # Not 0: by the length of a timer that came late, Textual divides.
    monkeypatch.setattr("flyball.adapters.tui.approvals._MOMENT", 1e-6)
