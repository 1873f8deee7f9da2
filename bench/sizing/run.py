"""`make sizing`: what a region takes, simulated. See `--help`, and README.md."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench.sizing.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
