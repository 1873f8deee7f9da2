"""Exporters: where a run's trace goes when the run is over. And Tracing, which is put onto an agent."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TextIO, runtime_checkable
from urllib.parse import quote

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.observe.trace import RunTrace
from flyball.observe.trace_text import trace_text
from flyball.observe.watcher import unharmed

_LONGEST = 200
"""How long a file's name may be: most file systems allow 255 bytes."""


@runtime_checkable
class TraceExporter(Protocol):
    """Takes the traces of runs that are over."""

    def export(self, trace: RunTrace) -> Awaitable[None] | None:
        """Take a trace. May be async. What it raises is logged, and changes nothing."""
        ...


class Tracing(Feature):
    """Gives an agent's results their `trace`, and has the exporters take it: `features=[Tracing(...)]`.

    They are called in line, in their order, when the run's end is recorded, by whoever records it: at most
    once, and in the process that drives the run. `result.trace` follows from the journal alone: it is the
    same after a resume or a replay, and wherever the run was driven.
    """

    name = "tracing"

    def __init__(self, *exporters: TraceExporter) -> None:
        for exporter in exporters:
            if not isinstance(exporter, TraceExporter):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"Tracing takes objects with export(trace), not {exporter!r}")
        self.exporters = exporters

    def __repr__(self) -> str:
        return f"<Tracing {', '.join([type(exporter).__name__ for exporter in self.exporters])}>"

    async def export(self, trace: RunTrace) -> None:
        """Have the exporters take a trace."""
        await _export(self.exporters, trace)


class MultiExporter:
    """Several exporters as one. All of them are called, also where one fails: that is logged."""

    def __init__(self, *exporters: TraceExporter) -> None:
        self.exporters = exporters

    async def export(self, trace: RunTrace) -> None:
        """See `TraceExporter.export`."""
        await _export(self.exporters, trace)


class ConsoleExporter:
    """Writes a trace for people to read: to `file`, or to where errors go. In colour on a terminal.

    Colours are left out where NO_COLOR is set. What models and tools said is cut to a line each, and cannot
    steer the terminal.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file

    def export(self, trace: RunTrace) -> None:
        """See `TraceExporter.export`."""
        file = self.file or sys.stderr
        text = trace_text(trace, colour=file.isatty() and not os.environ.get("NO_COLOR"))
        if encoding := getattr(file, "encoding", None):
            text = text.encode(encoding, "replace").decode(encoding)
        file.write(text)
        file.flush()


class JSONFileExporter:
    """Writes each trace into a file of its own, `<run id>.json`, in a folder that is made if need be.

    A file is there whole or not at all; another attempt at the same run writes it anew. An id cannot lead out
    of the folder: what is no letter, digit, `-`, `_` or `.` is written as `%2F` or the like.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def path_of(self, run_id: str) -> Path:
        """The file that a run's trace is in."""
        name = quote(run_id, safe="", errors="surrogatepass")
        if name.startswith((".", "~")) or not name:
            name = f"%{ord(name[0]):02X}{name[1:]}" if name else "%00"
        if len(name) > _LONGEST:
            digest = sha256(run_id.encode(errors="surrogatepass")).hexdigest()
            name = f"{name[: _LONGEST - 65]}-{digest}"
        return self.directory / f"{name}.json"

    async def export(self, trace: RunTrace) -> None:
        """See `TraceExporter.export`."""
        await asyncio.to_thread(self._write, self.path_of(trace.run_id), trace.to_json())

    def _write(self, path: Path, data: bytes) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self.directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise


async def _export(exporters: tuple[TraceExporter, ...], trace: RunTrace) -> None:
    for exporter in exporters:
        who, what = f"the exporter {type(exporter).__name__}", f"the trace of run {trace.run_id!r}"
        await unharmed(who, what, exporter.export, trace)
