"""`make bench-local`: what a grammar costs. See `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.local.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
