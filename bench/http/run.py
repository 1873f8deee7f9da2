"""`make bench-http`: model calls over HTTP, beside bare aiohttp and beside frameworks. See `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.http.command import main  # noqa: E402

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
