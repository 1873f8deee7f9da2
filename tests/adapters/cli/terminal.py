"""A command on a terminal of its own: what a person sees and types."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.patience import PATIENCE

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")

_OWN_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from flyball.adapters.cli import main
sys.exit(main())
"""
"""Makes the terminal on stdin the process's own, so that Ctrl-C reaches it, and runs the command."""


class Terminal:
    """A child whose stdin, stdout and stderr are a terminal."""

    def __init__(self, *argv: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        # Ctrl-C would throw away what is on its way to the screen, also what came after it.
        settings = termios.tcgetattr(slave)
        settings[3] |= termios.NOFLSH
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        self.child = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _OWN_TERMINAL, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was shown, without colours."""
        return _ESCAPES.sub("", self.raw).replace("\r", "")

    def wait_for(self, text: str, seconds: float = PATIENCE) -> None:
        """Read until something was shown since the last time that this was called."""
        end, seen = time.monotonic() + seconds, self._seen
        while text not in self.text[seen:]:
            assert time.monotonic() < end, f"{text!r} was not shown in {self.text[seen:]!r}"
            if not self._read(1):
                raise AssertionError(f"it ended before it showed {text!r}: {self.text!r}")
        self._seen = self.text.index(text, seen) + len(text)

    def wait_for_rest(self) -> None:
        """Wait until the child waits for keys: Python's line editor hears a signal only then."""
        place = Path(f"/proc/{self.child.pid}/wchan")
        while place.exists() and not re.search("poll|select", place.read_text()):
            time.sleep(0)

    def type(self, keys: str) -> None:
        """Press keys; "\\x03" is Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Read to the end; gives the exit code."""
        while self._read(PATIENCE):
            pass
        return self.child.wait(PATIENCE)

    def hang_up(self) -> None:
        """Take the terminal away."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """Take the terminal away; a child that is still there is killed."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        if self._master >= 0:
            self.hang_up()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return self.child.poll() is None
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux tells the end of a terminal so
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


OnTerminal = Callable[..., Terminal]
