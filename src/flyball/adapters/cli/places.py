"""Where things are kept: runs in the user's data folder, unless FLYBALL_HOME or an option says otherwise."""

from __future__ import annotations

from pathlib import Path

from flyball.runtime.places import HOME, data_folder, make_private

__all__ = ["CHAT_HISTORY", "HOME", "JOURNAL", "data_folder", "journal_file", "make_private"]

JOURNAL = "runs.db"
CHAT_HISTORY = "chat_history"


def journal_file(given: Path | None) -> Path:
    """The file that runs are recorded in."""
    return data_folder() / JOURNAL if given is None else given.expanduser()
