"""Ids: unique, and in the order in which they were made."""

from __future__ import annotations

import os
import re
import threading

import pytest

from flyball.core import ids
from flyball.core.ids import IdSource, id_time, new_id


def test_ids_are_uuids_of_version_7() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}", new_id())


def test_ids_sort_by_the_time_they_were_made() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("step", [0, -1_000_000_000, -1])
def test_a_clock_that_stands_or_goes_back_does_not_disturb_the_order(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_700_000_000_000_000_000

    def clock() -> int:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr(ids, "time_ns", clock)
    source = IdSource()
    # More than the counter has room for within one millisecond.
    made = [source() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{19}", one) for one in made)


def test_the_time_of_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "time_ns", lambda: 1_700_000_000_123_456_789)
    assert id_time(IdSource()()) == 1_700_000_000.123


def test_threads_get_different_ids_each_in_order() -> None:
    made: dict[int, list[str]] = {n: [] for n in range(8)}
    start = threading.Barrier(len(made))

    def make(n: int) -> None:
        start.wait()
        made[n] = [new_id() for _ in range(2_000)]

    threads = [threading.Thread(target=make, args=(n,)) for n in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for some in made.values() for one in some}) == 8 * 2_000
    assert all(some == sorted(some) for some in made.values())


def test_two_sources_make_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "time_ns", lambda: 1_700_000_000_000_000_000)
    assert IdSource()() != IdSource()()


@pytest.mark.integration
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, "".join(new_id()[16:] for _ in range(20)).encode())
        os._exit(0)
    mine = {new_id()[16:] for _ in range(20)}
    os.waitpid(child, 0)
    text = os.read(read, 16 * 20).decode()
    os.close(read)
    os.close(write)
    theirs = {text[n : n + 16] for n in range(0, len(text), 16)}
    assert len(theirs) == 20
    assert not mine & theirs
