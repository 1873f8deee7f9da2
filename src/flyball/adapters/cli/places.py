"""Where things are kept: runs in the user's data folder, unless FLYBALL_HOME or an option says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

HOME = "FLYBALL_HOME"
JOURNAL = "runs.db"
CHAT_HISTORY = "chat_history"


def data_folder() -> Path:
    """The folder for what must not be lost: FLYBALL_HOME, or the platform's data folder for flyball."""
    if home := os.environ.get(HOME):
        return Path(home).expanduser()
    from platformdirs import user_data_path

    return user_data_path("flyball", appauthor=False)


def journal_file(given: Path | None) -> Path:
    """The file that runs are recorded in."""
    return data_folder() / JOURNAL if given is None else given.expanduser()
