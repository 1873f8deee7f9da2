"""Where a user's data is kept, by all that keeps any."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

HOME = "FLYBALL_HOME"


def data_folder() -> Path:
    """The folder for what must not be lost: FLYBALL_HOME, or the platform's data folder for flyball."""
    if home := os.environ.get(HOME):
        return Path(home).expanduser()
    from platformdirs import user_data_path

    return user_data_path("flyball", appauthor=False)


def make_private(file: Path) -> None:
    """Have a file that only its owner may read, where there is none yet; prompts are nobody else's business.

    What cannot be made is left to whoever opens it, who can say what is wrong.
    """
    if file.exists():
        return
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
