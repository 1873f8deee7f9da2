"""The options that every command has, and the journal that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from flyball.adapters.cli.places import journal_file, make_private
from flyball.core.errors import LoopNotFound, UserError
from flyball.runtime.sqlite import SQLiteJournal


@Parameter(name="*")
@dataclass(frozen=True)
class Shared:
    """Options of all commands that have to do with runs."""

    journal: Path | None = None
    """The file that runs are recorded in; without it, runs.db in the user's data folder."""
    json: bool = False
    """Print one JSON document on stdout, and nothing else there."""
    debug: bool = False
    """Show the traceback of an error."""

    @property
    def file(self) -> Path:
        """The journal's file."""
        return journal_file(self.journal)

    def open(self) -> SQLiteJournal:
        """The journal; the file is made where it is not there, and nobody else may read it.

        Raises:
            UserError: it was named, and its folder is not there.
        """
        if self.journal is not None and not self.file.parent.is_dir():
            raise UserError(f"--journal {self.journal}: there is no folder {self.file.parent}: make it first")
        make_private(self.file)
        return SQLiteJournal(self.file)

    def recorded(self) -> SQLiteJournal:
        """The journal, which must be there already: reading makes no file.

        Raises:
            LoopNotFound: there is none.
        """
        if not self.file.exists():
            raise LoopNotFound(f"there are no runs: {self.file} is not there", path=str(self.file))
        return SQLiteJournal(self.file)


SHARED = Shared()
