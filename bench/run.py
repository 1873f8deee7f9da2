"""`make bench`: flyball beside its floor. See `--help`, and README.md for what the rows mean."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
