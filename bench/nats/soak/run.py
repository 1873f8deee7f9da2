"""`make soak`: loops on NATS while everything is killed. See `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])

from bench.nats.soak.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
