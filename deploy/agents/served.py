"""An agent to begin with: `flyball serve served`, `flyball worker served`. Put your own in its place.

FLYBALL_MODEL names its model: `local` (the embedded one) without it.
"""

from __future__ import annotations

import os

from flyball import Agent

assistant = Agent(
    os.environ.get("FLYBALL_MODEL", "local"),
    name="assistant",
    instructions="You are a helpful assistant. Be brief.",
    description="Answers questions.",
)
