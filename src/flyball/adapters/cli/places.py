"""Where things are kept: runs in the user's data folder, unless FLYBALL_HOME or an option says otherwise."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from flyball.runtime.places import HOME, data_folder

__all__ = ["CHAT_HISTORY", "HOME", "JOURNAL", "data_folder", "journal_file", "make_private"]

JOURNAL = "runs.db"
CHAT_HISTORY = "chat_history"


def make_private(file: Path) -> None:
    """Have a file that only its owner may read, where there is none yet; prompts are nobody else's business.

    What cannot be made is left to whoever opens it, who can say what is wrong.
    """
    if file.exists():
        return
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))


def journal_file(given: Path | None) -> Path:
    """The file that runs are recorded in."""
    return data_folder() / JOURNAL if given is None else given.expanduser()
