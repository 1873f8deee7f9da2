"""`python -m flyball`: the command `flyball`."""

from __future__ import annotations

from flyball.adapters.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
