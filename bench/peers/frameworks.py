"""Who is measured: flyball, and the peers that it is held against."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"


class Framework(NamedTuple):
    """A framework: its name in the table and the module that has it on the workloads.

    `requirements` is what its environment holds, pinned; flyball has none, as it runs where the command does.
    """

    name: str
    module: str
    requirements: Path | None


def peer(name: str, module: str) -> Framework:
    """A peer, whose requirements stand in a file of its name."""
    return Framework(name, f"bench.peers.{module}", _REQUIREMENTS / f"{name}.txt")


FLYBALL = Framework("flyball", "bench.flyball_peer", None)
PEERS: tuple[Framework, ...] = (
    peer("pydantic-ai", "pydantic_ai_peer"),
    peer("openai-agents", "openai_agents_peer"),
    peer("agno", "agno_peer"),
    peer("agent-framework", "agent_framework_peer"),
)


def chosen_peers(names: list[str]) -> list[Framework]:
    """The peers that are asked for by name; none means all.

    Raises:
        ValueError: there is no such peer; the message names those there are.
    """
    known = {framework.name: framework for framework in PEERS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no peer {unknown[0]!r}; there are {', '.join(known)}")
    return [framework for framework in PEERS if framework.name in names] if names else list(PEERS)
