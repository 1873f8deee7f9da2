"""What was measured on one partition, and the same simulated: how far the simulation can be believed."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bench.sizing.plan import ALWAYS, DEFAULT, Failure, Plan
from bench.sizing.report import Report, simulate


class Measured(NamedTuple):
    """Loops a second, the least and the most of the runs, by so many callers."""

    sync: str
    replicas: int
    workers: Literal["together", "apart"]
    callers: int
    least: float
    most: float


MEASURED = (
    Measured("default", 1, "together", 1, 45, 55),
    Measured("default", 1, "together", 8, 102, 128),
    Measured("default", 1, "together", 64, 102, 136),
    Measured("always", 1, "together", 1, 22, 67),
    Measured("always", 1, "together", 8, 30, 60),
    Measured("always", 1, "together", 64, 42, 70),
    Measured("default", 1, "apart", 1, 24, 30),
    Measured("default", 1, "apart", 8, 60, 60),
    Measured("default", 1, "apart", 64, 45, 62),
    Measured("always", 1, "apart", 1, 12, 15),
    Measured("always", 1, "apart", 8, 19, 19),
    Measured("always", 1, "apart", 64, 23, 34),
    Measured("always", 3, "together", 1, 14, 14),
    Measured("always", 3, "together", 8, 30, 35),
    Measured("always", 3, "together", 64, 54, 60),
)
"""On 2026-11-17, as in bench/nats/README.md."""
FACTOR = 2.0
"""How far the simulation may be outside of what was measured."""


def as_measured(one: Measured, seconds: float = 20.0) -> Plan:
    """The machine that was measured: others left about one of its two cores, and everything was on it."""
    return Plan(
        partitions=1,
        replicas=one.replicas,
        nodes=one.replicas,
        zones=one.replicas,
        crews=1,
        apart=one.workers == "apart",
        callers=one.callers,
        seconds=seconds,
        model=0.0,
        tool=0.0,
        costs=ALWAYS if one.sync == "always" else DEFAULT,
        cores=1,
        hop=0.0005,
        shared=True,
    )


def off(one: Measured, rate: float) -> float:
    """By which factor a rate is outside of what was measured: 1 is inside."""
    return max(one.least / rate, rate / one.most, 1.0)


def soak(seed: int = 1) -> Report:
    """The recorded soak: 100 callers, 7 processes of which 33 are killed, and the server 7 times, in 45 s."""
    server = [Failure(6.0 * n, "node", 0, 0.3) for n in range(1, 8)]
    workers = [Failure(1.0 + 1.3 * n, "worker", n, 0.7) for n in range(SOAK_KILLS)]
    plan = Plan(
        partitions=4,
        replicas=1,
        nodes=1,
        zones=1,
        crews=7,
        callers=100,
        seconds=45.0,
        model=0.0,
        tool=0.01,
        cores=1,
        hold=2.0,
        election=(0.0, 0.0),
        shared=True,
        failures=(*server, *workers),
        seed=seed,
    )
    return simulate(plan)


SOAK_KILLS = 33
SOAK_LOST = (77 + 47) / SOAK_KILLS
"""Tool calls that were under way in a worker that the recorded soak killed: repeated, or interrupted."""


def lost(report: Report, calls: int = 5) -> float:
    """Calls that were repeated in the simulated soak, of models and of tools, for each kill."""
    return report.repeated / 1e6 * report.loops * (2 * calls + 1) / SOAK_KILLS
