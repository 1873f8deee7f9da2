"""`python -m flyball.adapters.cli`: the same as the command `flyball`."""

import sys

from flyball.adapters.cli import main

if __name__ == "__main__":
    sys.exit(main())
