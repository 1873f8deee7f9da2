"""Where a user's data is kept, by all that keeps any."""

from __future__ import annotations

import os
from pathlib import Path

HOME = "FLYBALL_HOME"


def data_folder() -> Path:
    """The folder for what must not be lost: FLYBALL_HOME, or the platform's data folder for flyball."""
    if home := os.environ.get(HOME):
        return Path(home).expanduser()
    from platformdirs import user_data_path

    return user_data_path("flyball", appauthor=False)
