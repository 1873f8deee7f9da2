"""The figures of a row: its workers are started together, then asked for a round each, in turns.

So each figure is taken while the others rest, and what disturbs one round disturbs all frameworks alike. A
figure is the lowest of the rounds' medians, over all processes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench import ROOT, SOURCE
from bench.peers.frameworks import Framework
from bench.peers.rows import Row
from bench.peers.workers import About, Result, Worker, environment


class Subject(NamedTuple):
    """A framework that can be measured."""

    framework: Framework
    python: Path
    about: About


class Effort(NamedTuple):
    """How much is measured: processes, rounds in each, samples in a round, how long a sample is at least."""

    processes: int
    rounds: int
    samples: int
    sample_ns: int

    def on(self, row: Row) -> Effort:
        """Less of it for what takes long."""
        if row.name == "W5":
            return Effort(1, min(3, self.rounds), 1, self.sample_ns)
        return Effort(1, 1, 1, self.sample_ns) if row.kind == "memory" else self


Results: TypeAlias = Mapping[str, Result]
"""What came of each framework, by name."""

_IMPORT = "from time import process_time_ns as now; began = now()\n{}\nprint(now() - began)"


def measure(row: Row, subjects: Iterable[Subject], effort: Effort) -> Results:
    """Measure a row for all frameworks."""
    effort, subjects = effort.on(row), list(subjects)
    if row.kind == "import":
        return lowest([{one.framework.name: _import(one) for one in subjects} for _ in range(effort.rounds)])
    return lowest([_in_fresh_processes(row, subjects, effort) for _ in range(effort.processes)])


def lowest(several: Iterable[Results]) -> Results:
    """What came of a row in several processes: the lowest figures, or what is void in one of them."""
    least: dict[str, Result] = {}
    for results in several:
        for name, result in results.items():
            so_far = least.get(name, result)
            figures = [one.figure for one in (so_far, result) if one.figure is not None]
            void = so_far.void or result.void
            least[name] = Result(void=void) if void else Result(min(figures, default=None))
    return least


def _in_fresh_processes(row: Row, subjects: Iterable[Subject], effort: Effort) -> Results:
    with ExitStack() as stack:
        workers = {
            framework.name: stack.enter_context(Worker(framework, python, row.name, effort.sample_ns))
            for framework, python, _ in subjects
        }
        for worker in workers.values():
            worker.wait_until_ready()
        for _ in range(effort.rounds):
            for worker in workers.values():
                worker.ask(effort.samples)
        for worker in workers.values():
            worker.end()
        return {name: worker.result for name, worker in workers.items()}


def _import(subject: Subject) -> Result:
    """The CPU time of an import in a process of its own; the interpreter's own start is not counted."""
    done = subprocess.run(
        [str(subject.python), "-c", _IMPORT.format(subject.about.imported)],
        cwd=ROOT,
        env=environment() | ({"PYTHONPATH": str(SOURCE)} if subject.framework.requirements is None else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return Result(void=f"it cannot be imported: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return Result(float(done.stdout.splitlines()[-1]))
