"""Whatever is done to a SQLiteJournal, it answers as a plain dict of lists would."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flyball.core.errors import JournalConflict
from flyball.core.events import Event
from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.schema import Synchronous
from flyball.testing.conformance.samples import every_event
from tests.effort import examples

ids = st.sampled_from(["a", "b", "A", "é", "a'b"])
lists = st.lists(st.sampled_from(every_event()), max_size=7)


class JournalMachine(RuleBasedStateMachine):
    """Two journal objects on one file, as two processes have it, against the model."""

    @initialize(one=st.sampled_from(["full", "normal"]), other=st.sampled_from(["full", "normal"]))
    def open(self, one: Synchronous, other: Synchronous) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "runs.db"
        self.journals = [SQLiteJournal(path, synchronous=one), SQLiteJournal(path, synchronous=other)]
        self.model: dict[str, list[Event]] = {}

    @rule(which=st.integers(0, 1), loop_id=ids, events=lists, off=st.sampled_from([0, 0, 0, -1, 1, 5]))
    def append(self, which: int, loop_id: str, events: list[Event], off: int) -> None:
        known = self.model.get(loop_id, [])
        expected = len(known) + off
        work = self.journals[which].append(loop_id, events, expected)
        if off:
            with pytest.raises(JournalConflict) as caught:
                self.runner.run(work)
            told = {"loop_id": loop_id, "expected": expected, "actual": len(known)}
            assert caught.value.details == told
        else:
            assert self.runner.run(work) == len(known) + len(events)
            if events:
                self.model[loop_id] = known + events

    @rule(which=st.integers(0, 1), loop_id=ids, start=st.integers(0, 9))
    def read(self, which: int, loop_id: str, start: int) -> None:
        assert (
            self.runner.run(self.journals[which].read(loop_id, start)) == self.model.get(loop_id, [])[start:]
        )

    @rule(which=st.integers(0, 1), loop_id=ids, length=st.integers(0, 9))
    def wait(self, which: int, loop_id: str, length: int) -> None:
        longer = len(self.model.get(loop_id, [])) > length
        assert self.runner.run(self.journals[which].wait(loop_id, length, timeout=0)) is longer

    @rule(which=st.integers(0, 1), loop_id=ids)
    def delete(self, which: int, loop_id: str) -> None:
        assert self.runner.run(self.journals[which].delete(loop_id)) == len(self.model.pop(loop_id, []))

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        path = self.journals[which].path
        self.runner.run(self.journals[which].close())
        self.journals[which] = SQLiteJournal(path)

    @invariant()
    def lists_the_loops(self) -> None:
        for journal in self.journals:
            assert self.runner.run(journal.loops()) == list(reversed(self.model))

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            for journal in self.journals:
                assert self.runner.run(journal.integrity()) == []
                self.runner.run(journal.close())
            self.runner.close()
            self.folder.cleanup()


TestJournalMachine: Any = JournalMachine.TestCase
TestJournalMachine.settings = settings(examples(12), stateful_step_count=20)
