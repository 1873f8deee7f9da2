"""`make bench-peers`: flyball beside other frameworks. See `--help`, and bench/README.md."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.peers.command import main  # noqa: E402

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the workers are gone; there is nothing to tell
