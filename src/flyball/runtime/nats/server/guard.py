"""nats-server in a process that ends with its parent, however that ends. Run by its path, without flyball.

Its standard input is a pipe that the parent holds open and never writes to. When that ends, the parent has
gone, or wants it to go: the server is told to stop, and ended if it does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import NoReturn

_PATIENCE = 10.0
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Linux only: whoever kills the guard with a signal that it cannot see ends the server too."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> NoReturn:
    """Run the command that was given, until it ends or standard input does; its exit code is ours."""
    linux = sys.platform == "linux"
    server = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent if linux else None,  # noqa: PLW1509 - no thread runs yet
        # A Ctrl-C in the terminal is for the parent, which decides what comes of it.
        start_new_session=True,
    )

    def watch() -> None:
        while os.read(0, 1024):
            continue
        server.terminate()
        try:
            server.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=watch, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    code = server.wait()
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
