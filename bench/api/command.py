"""The command: what requests cost, who can follow, how soon tokens arrive; its exit code says what held."""

from __future__ import annotations

import json
import resource
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.api import first_bytes, followers, load
from bench.api.followers import Round
from bench.api.table import Figure, printed

_ON_TOP = 400.0
"""Microseconds of the processor that the API may take on top of `System.handle`."""
_RATE = 1_000.0
"""Requests a second that one core serves."""
_FLAT = 1.05
"""How many times its memory a server may have after rounds, or when it has told four times as much."""
_KEPT = 256.0
"""Bytes that a piece of an answer may take while that is not recorded: until then it is kept anyhow."""
_TIMES = "\N{MULTIPLICATION SIGN}"
_FIRST_BYTE = 5.0
"""Milliseconds from the engine to the client."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives 1 if a budget was missed."""
    options = _parser().parse_args(arguments)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parts: dict[str, tuple[str, Callable[[Namespace], list[Figure]]]] = {
        "requests": ("requests over keep-alive connections, beside System.handle", _requests),
        "followers": ("those who follow loops: the server's memory (resident)", _followers),
        "first-byte": ("from the engine to the client (clock; floor: a bare uvloop server)", _first_byte),
    }
    figures: dict[str, list[Figure]] = {}
    for name, (title, measure) in parts.items():
        if not options.only or name in options.only:
            figures[name] = measure(options)
            print(printed(title, figures[name]), flush=True)
    if options.json is not None:
        rows = {name: [{**one._asdict(), "held": one.held} for one in some] for name, some in figures.items()}
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return int(not all(one.held for some in figures.values() for one in some))


def _requests(options: Namespace) -> list[Figure]:
    cases = [case for case in load.CASES if not options.case or case.name in options.case]
    ours: dict[str, list[load.Cost]] = {case.name: [] for case in cases}
    floors: dict[str, list[load.Cost]] = {case.name: [] for case in cases}
    for number in range(options.rounds):
        for case in cases:
            _say(f"requests: round {number + 1} of {options.rounds}, {case.name}")
            floors[case.name].append(load.handled(case, options.requests, options.at_once))
            ours[case.name].append(load.over_http(case, options.requests, options.at_once))
    found: list[Figure] = []
    for case in cases:
        cost, floor = load.lowest(ours[case.name]), load.lowest(floors[case.name])
        found += [
            Figure(f"{case.what}: processor time", cost.cpu * 1e6, "µs", None, floor.cpu * 1e6),
            Figure("  on top of System.handle", (cost.cpu - floor.cpu) * 1e6, "µs", _ON_TOP),
            Figure(
                "  requests a second of one core", 1 / cost.cpu, "/s", _RATE, 1 / floor.cpu, at_least=True
            ),
            Figure("  requests a second by the clock", 1 / cost.clock, "/s", None, 1 / floor.clock),
        ]
    if options.profile is not None:
        _say("requests: profile")
        load.over_http(cases[-1], options.requests, options.at_once, options.profile)
    return found


def _followers(options: Namespace) -> list[Figure]:
    crowd, pieces = options.followers, options.pieces
    _say(f"followers: {crowd} of one loop")
    several = [pieces] * (2 * options.rounds)
    one = followers.follow(1, crowd, [*several, 4 * pieces])
    _say(f"followers: one of each of {crowd} loops")
    each = followers.follow(crowd, 1, [*several, 4 * pieces])
    return [
        *_memory(f"{crowd:,} followers of one loop", one),
        *_memory(f"{crowd:,} loops with one follower each", each, loops=crowd),
    ]


def _memory(who: str, rounds: list[Round], *, loops: int = 1) -> list[Figure]:
    """What rounds of joining and leaving show. The last of them tells four times as much."""
    *same, longer = rounds
    frames, cpu = sum(one.frames for one in rounds), sum(one.cpu for one in rounds)
    told = loops * (longer.pieces - same[-1].pieces)
    flat, kept = (_FLAT, None) if loops == 1 else (None, _KEPT)
    half = len(same) // 2
    growth = min(one.left for one in same[half:]) / min(one.left for one in same[:half])
    return [
        Figure(f"{who}: joined", same[0].joined / 1e6, "MB"),
        Figure(f"  told {same[0].pieces} pieces: peak", same[0].peak / 1e6, "MB"),
        Figure(f"  left, after the last of {len(same)} such rounds", same[-1].left / 1e6, "MB"),
        Figure("  the second half of them beside the first", growth, _TIMES, _FLAT),
        Figure(f"  told {longer.pieces} pieces: peak", longer.peak / 1e6, "MB"),
        Figure("  beside before", longer.peak / same[-1].peak, _TIMES, flat),
        Figure(
            "  a piece more, until its answer is recorded", (longer.peak - same[-1].peak) / told, "B", kept
        ),
        Figure("  processor time for each frame that was told", cpu / frames * 1e6, "µs"),
    ]


def _first_byte(options: Namespace) -> list[Figure]:
    found: list[Figure] = []
    for others in (0, options.others):
        rounds: list[dict[first_bytes.Way, first_bytes.Delay]] = []
        for number in range(options.rounds):
            _say(f"first byte: round {number + 1} of {options.rounds}, {others} other streams")
            rounds.append(first_bytes.delays(options.timed, others, options.every))
        besides = f"{others} other streams" if others else "idle server"
        for way in first_bytes.WAYS:
            name = "POST …/stream" if way == "POST" else "GET …/loops/{id}/stream"
            for part in ("p50", "p99"):
                value, floor = [
                    min(getattr(one[which], part) for one in rounds) * 1e3 for which in (way, "floor")
                ]
                found.append(Figure(f"{name}, {besides}: {part}", value, "ms", _FIRST_BYTE, floor))
    return found


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="make bench-api", description="Measure the HTTP API of `flyball serve` beside System.handle."
    )
    add = parser.add_argument
    add("--only", action="append", choices=["requests", "followers", "first-byte"], help="some parts")
    add("--rounds", type=int, default=3, metavar="N", help="how often each is measured, in turns (3)")
    add("--requests", type=int, default=2_000, metavar="N", help="requests in a round (2,000)")
    add("--at-once", type=int, default=32, metavar="N", help="connections that they come over (32)")
    add("--case", action="append", choices=[case.name for case in load.CASES], help="some ways to serve")
    add("--followers", type=int, default=1_000, metavar="N", help="how many follow (1,000)")
    add(
        "--pieces", type=int, default=100, metavar="N", help="pieces of an answer; then four times that (100)"
    )
    add("--timed", type=int, default=300, metavar="N", help="pieces whose way is timed (300)")
    add("--others", type=int, default=100, metavar="N", help="other streams meanwhile (100)")
    add("--every", type=float, default=0.1, metavar="S", help="seconds between two of their pieces (0.1)")
    add("--profile", type=Path, metavar="FILE", help="write where the server's time went, for pstats")
    add("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser
