"""The command: asks every model by every method, and prints how it went."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TextIO, TypedDict

import msgspec
from msgspec.structs import replace
from typing_extensions import Unpack

from bench.control.methods import METHODS, SETTINGS, methods_for
from bench.control.report import Outcome, as_json, kinds, missed, mistakes, rows, seen, tables
from bench.control.results import FILE, Results, code_version
from bench.control.tasks import Task, all_tasks
from flyball.core.errors import FlyballError
from flyball.core.settings import ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine

Advance = Callable[[str], None]
"""Told before each task what is asked now."""

_WIDTH = 200
"""How wide tables may be where no terminal says it."""


class _How(TypedDict):
    methods: Sequence[str]
    tasks: Sequence[Task]
    settings: ModelSettings
    results: Results
    advance: Advance


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if `--check` found a target missed, 2 if an engine failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    tasks = chosen(all_tasks(), options.only, options.half, options.limit)
    if not tasks:
        parser.error(f"no task is called {' or '.join(options.only)} in the half {options.half!r}")
    settings = replace(SETTINGS, temperature=options.temperature, seed=options.seed)
    version = options.version or code_version()
    results = Results(options.results, version, settings)
    models: list[str] = options.model or default_models()
    methods: list[str] = options.method or list(METHODS)
    try:
        with progress(len(models) * len(methods) * len(tasks)) as advance:
            how: _How = {
                "methods": methods,
                "tasks": tasks,
                "settings": settings,
                "results": results,
                "advance": advance,
            }
            outcomes = asyncio.run(_ask_all(models, **how))
    except FlyballError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 2
    about = {"version": version, "settings": msgspec.to_builtins(settings)}
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(outcomes, about, reveal=options.reveal), indent=2) + "\n")
    return _tell(outcomes, options, version, out)


async def ask(
    model: str,
    engine: Engine,
    *,
    methods: Sequence[str],
    tasks: Sequence[Task],
    settings: ModelSettings,
    results: Results,
    advance: Advance,
) -> list[Outcome]:
    """Ask one model by several methods. What is known already is not asked again.

    Raises:
        FlyballError: the engine failed. What came before is kept.
    """
    outcomes: list[Outcome] = []
    by_name = methods_for(engine, settings)
    for name in methods:
        for task in tasks:
            advance(f"{model}  {name}  {task.group}")
            reply = results.get(model, name, task)
            if reply is None:
                reply = await by_name[name].answer(task)
                results.put(model, name, task, reply)
            outcomes.append(Outcome(model, name, task, reply))
    return outcomes


def chosen(tasks: Sequence[Task], only: Sequence[str], half: str, limit: int | None) -> list[Task]:
    """The tasks of a half whose set or name matches; of each set the first `limit`."""
    picked: list[Task] = []
    counts: dict[str, int] = {}
    for task in tasks:
        fits = half == "both" or task.held == (half == "held")
        if fits and (not only or any(_matches(task, pattern) for pattern in only)):
            counts[task.group] = counts.get(task.group, 0) + 1
            if limit is None or counts[task.group] <= limit:
                picked.append(task)
    return picked


def _matches(task: Task, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (task.group, task.name, task.id))


async def _ask_all(models: Sequence[str], **how: Unpack[_How]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for model in models:
        engine = resolve_engine(model)
        try:
            outcomes += await ask(model, engine, **how)
        finally:
            close = getattr(engine, "aclose", None)
            if close is not None:
                await close()
    return outcomes


def _tell(outcomes: Sequence[Outcome], options: Namespace, version: str, out: TextIO | None) -> int:
    from rich.console import Console

    console = Console(file=out, highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH
    console.print(f"control · code {version} · temperature {options.temperature:g}, seed {options.seed}\n")
    lines = rows(outcomes)
    for table in tables(lines):
        console.print(table)
    if options.details or options.reveal:
        shown = seen(outcomes, reveal=options.reveal)
        for line in [*kinds(shown), *mistakes(shown)]:
            console.print(line)
    if options.check and (faults := missed(lines)):
        for fault in faults:
            console.print(fault)
        return 1
    return 0


@contextmanager
def progress(total: int) -> Generator[Advance]:
    """A bar of so many steps on stderr, gone at the end; gives what moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        begun = False

        def advance(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, advance=int(begun))
            begun = True

        yield advance


def default_models() -> list[str]:
    """The models that are measured unless others are named: the default one and SmolLM2."""
    from flyball.models import SMALL

    return ["local", f"local:{SMALL.name}"]


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="bench/control/run.py", description="Tasks with known answers: validity and accuracy."
    )
    add = parser.add_argument
    add("-m", "--model", action="append", help="a model string; may be said again (local and SmolLM2)")
    add("--method", action="append", choices=METHODS, help="only this method; may be said again")
    add("--only", action="append", default=[], metavar="NAME", help="only this set or task; * stands for any")
    add("--half", choices=("open", "held", "both"), default="both", help="which half to ask (both)")
    add("--limit", type=int, metavar="N", help="only the first N tasks of each set")
    add("--details", action="store_true", help="show what went wrong in the open half")
    add("--reveal", action="store_true", help="show it for the held half too: then it is no longer held")
    add("--check", action="store_true", help="exit with 1 if the held half's targets are missed")
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="write everything to a file; held replies only with --reveal",
    )
    add("--temperature", type=float, default=0.0, help="the temperature (0)")
    add("--seed", type=int, default=0, help="the seed (0)")
    add("--version", metavar="NAME", help="what replies are kept under (a hash of the code)")
    add("--results", type=Path, default=FILE, metavar="FILE", help="where replies are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
