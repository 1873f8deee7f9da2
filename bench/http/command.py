"""The command: one server, a process a client and round, in turns; the table says what holds."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.peers.environments import Unavailable, python_of
from bench.peers.frameworks import PEERS, Framework

HERE = Path(__file__).resolve().parent
FLOOR = Framework("floor", "floor", None)
FLYBALL = Framework("flyball", "flyball", None)
OTHERS = tuple(
    Framework(peer.name, peer.name.replace("-", "_"), peer.requirements)
    for peer in PEERS
    if peer.name in ("pydantic-ai", "openai-agents")
)


class Case(NamedTuple):
    """Work to be measured: how many times the floor flyball may cost, and what part of a peer's figure."""

    name: str
    what: str
    runs: int
    budget: float
    share: float | None


CASES = (
    Case("turns", "ten tool turns, one run after another", 100, 1.5, 0.1),
    Case("together", "ten tool turns, 64 runs at once", 256, 1.5, 0.1),
    Case("stream", "a stream of 1,000 chunks, read as text", 60, 2.0, None),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives 1 if a budget was missed."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured, in turns")
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="some cases")
    parser.add_argument("--no-peers", action="store_true", help="flyball and the floor alone")
    options = parser.parse_args(arguments)
    who: list[tuple[Framework, Path]] = [(FLOOR, Path(sys.executable)), (FLYBALL, Path(sys.executable))]
    for other in () if options.no_peers else OTHERS:
        try:
            who.append((other, python_of(other)))
        except Unavailable as error:
            print(f"left out: {error}", file=sys.stderr)
    missed = False
    with served() as url:
        for case in CASES:
            if not options.only or case.name in options.only:
                missed |= not _report(case, _measured(case, who, url, options.rounds))
    return int(missed)


@contextmanager
def served() -> Generator[str]:
    """The server, for as long as it is needed."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()


def _measured(
    case: Case, who: Sequence[tuple[Framework, Path]], url: str, rounds: int
) -> dict[str, dict[str, float]]:
    """The lowest figures of each, measured in turns: what else the machine does only adds to them."""
    seen: dict[str, list[dict[str, float]]] = {framework.name: [] for framework, _ in who}
    for number in range(rounds):
        for framework, python in who:
            print(
                f"\r{case.name}: round {number + 1} of {rounds}, {framework.name}   ", end="", file=sys.stderr
            )
            seen[framework.name].append(_once(framework, python, url, case))
    print(file=sys.stderr)
    return {
        name: {key: min(figures[key] for figures in several) for key in several[0]}
        for name, several in seen.items()
    }


def _once(framework: Framework, python: Path, url: str, case: Case) -> dict[str, float]:
    command = [str(python), str(HERE / "worker.py"), framework.module, url, case.name, str(case.runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{framework.name} failed at {case.name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _report(case: Case, figures: dict[str, dict[str, float]]) -> bool:
    floor, ours = figures["floor"]["cpu"], figures["flyball"]["cpu"]
    within = ours <= case.budget * floor
    print(f"\n{case.what} (CPU time a run; what a program takes to load its client)")
    for name, seen in figures.items():
        note = ""
        if name == "flyball":
            note = f"{ours / floor:5.2f} times the floor, {case.budget:g} allowed {'✓' if within else '✗'}"
        elif name != "floor":
            share = seen["cpu"] / ours
            note = f"{share:5.1f} times flyball"
            if case.share is not None:
                fine = ours <= case.share * seen["cpu"]
                within &= fine
                note += f", at least {1 / case.share:g} wanted {'✓' if fine else '✗'}"
        print(f"  {name:14} {seen['cpu'] * 1e3:9.2f} ms {seen['import']:6.2f} s   {note}")
    return within
