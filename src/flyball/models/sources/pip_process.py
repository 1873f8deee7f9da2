"""pip in a process that ends with its parent, however that ends. It is run by its path, without flyball.

Its standard input is a pipe that the parent holds open and never writes to: when the parent is gone, it ends.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading


def end_with_parent() -> None:
    """End this process when standard input does."""
    while os.read(0, 1024):
        continue
    os._exit(1)


def main() -> None:
    """Be pip, with the arguments that were given."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.argv[0] = "pip"
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
