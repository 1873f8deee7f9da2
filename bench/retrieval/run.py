"""`make bench-retrieval`: how well retrievers find what answers a question. See `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.retrieval.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
