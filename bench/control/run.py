"""Tasks with known answers, asked of models. See `--help`, and README.md for what the figures mean."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.control.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
