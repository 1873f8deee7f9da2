"""Claims: who drives a loop is known to all who use the file, and forgotten with who dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.claims import FileClaims
from tests.patience import PATIENCE

CLAIMING = """
import sys
from flyball.runtime.sqlite.claims import FileClaims
claims = FileClaims(sys.argv[1])
claim = claims.claim("l1")
print("none" if claim is None else "claimed", flush=True)
sys.stdin.readline()
"""


def claiming(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLAIMING, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def test_one_has_it_until_it_lets_go(path: Path) -> None:
    one, other = SQLiteJournal(path), SQLiteJournal(path)
    claim = one.claim("l1")
    assert claim is not None
    assert one.is_claimed("l1")
    assert other.is_claimed("l1")
    assert one.claim("l1") is None
    assert other.claim("l1") is None
    assert not other.is_claimed("l2")
    claim.release()
    claim.release()
    assert not one.is_claimed("l1")
    assert other.claim("l1") is not None, "and is forgotten at once"
    assert not one.is_claimed("l1")


async def test_closing_the_journal_lets_go_of_all(path: Path) -> None:
    other = SQLiteJournal(path)
    async with SQLiteJournal(path) as journal:
        claims = [journal.claim(name) for name in ("l1", "l2")]
        assert all(claims)
        assert other.is_claimed("l2")
    assert not other.is_claimed("l1")
    assert not other.is_claimed("l2")


@pytest.mark.integration
def test_a_process_that_is_killed_has_nothing(path: Path) -> None:
    claims = FileClaims(str(path))
    with claiming(path) as child:
        assert first_line(child) == "claimed"
        assert claims.is_claimed("l1")
        with claiming(path) as second:
            assert first_line(second) == "none"
            second.kill()
        assert claims.is_claimed("l1"), "one that had no claim takes none away"
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not claims.is_claimed("l1")


@pytest.mark.integration
def test_a_fork_neither_has_its_parents_claims_nor_ends_them(path: Path) -> None:
    claims = FileClaims(str(path))
    claim = claims.claim("l1")
    assert claim is not None
    if (child := os.fork()) == 0:
        taken = claims.claim("l1") is not None
        claim.release()
        claims.close()
        os._exit(1 if taken else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert FileClaims(str(path)).is_claimed("l1")


@pytest.mark.integration
def test_an_orphan_of_a_dead_process_keeps_nothing(path: Path) -> None:
    forking = CLAIMING.replace(
        "sys.stdin.readline()", "import os\nif os.fork() == 0: sys.stdin.readline()\nos._exit(0)"
    )
    command = [sys.executable, "-c", forking, str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first_line(child) == "claimed"
    child.wait()
    try:
        claims, until = FileClaims(str(path)), time.monotonic() + PATIENCE
        while claims.is_claimed("l1"):  # the orphan may not have come to it yet
            assert time.monotonic() < until
            time.sleep(0.001)
    finally:
        child.communicate("\n")


def test_a_file_that_was_removed_is_made_anew_with_all_that_is_claimed(path: Path) -> None:
    one, other = FileClaims(str(path)), FileClaims(str(path))
    claim, more = one.claim("l1"), other.claim("l2")
    Path(f"{path}.driven").unlink()
    assert not one.is_claimed("l3")
    assert not other.is_claimed("l3")
    assert FileClaims(str(path)).is_claimed("l1")
    assert FileClaims(str(path)).is_claimed("l2")
    assert claim is not None
    assert more is not None
    claim.release()
    assert not other.is_claimed("l1")


@pytest.mark.integration
def test_who_only_asks_is_in_nobodys_way(path: Path) -> None:
    claims = FileClaims(str(path))
    asking = CLAIMING.partition("claim = ")[0] + "print(flush=True)\nwhile True: claims.is_claimed('l1')"
    command = [sys.executable, "-c", asking, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        first_line(child)
        for _ in range(5_000):
            claim = claims.claim("l1")
            assert claim is not None
            claim.release()
        child.kill()


def test_where_nothing_can_be_locked_the_journal_still_knows_its_own(tmp_path: Path) -> None:
    claims = FileClaims(str(tmp_path / "nowhere" / "runs.db"))
    claim = claims.claim("l1")
    assert claim is not None
    assert claims.is_claimed("l1")
    claim.release()
    assert not claims.is_claimed("l1")


@given(steps=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.booleans()), max_size=30))
def test_never_have_two_the_same(steps: list[tuple[int, str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        users = [FileClaims(f"{folder}/runs.db") for _ in range(3)]
        had: dict[str, tuple[int, object]] = {}
        for user, loop_id, takes in steps:
            if takes:
                claim = users[user].claim(loop_id)
                assert (claim is None) == (loop_id in had)
                if claim is not None:
                    had[loop_id] = (user, claim)
                del claim
            elif loop_id in had and had[loop_id][0] == user:
                del had[loop_id]  # forgotten, and so let go of
            for one in users:
                assert [one.is_claimed(name) for name in "ab"] == [name in had for name in "ab"]
        had.clear()
        for one in users:
            one.close()
