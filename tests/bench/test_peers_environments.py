"""A peer's environment: made of what is pinned, used again, made anew when it must be; else a clear line.

The package that is installed is made here, so no index is asked.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from bench.peers.environments import Unavailable, is_ready, python_of
from bench.peers.frameworks import FLYBALL, PEERS, Framework, chosen_peers
from bench.peers.rounds import Effort, Subject, measure
from bench.peers.rows import ROWS
from bench.peers.workers import about

ONCE = Effort(processes=1, rounds=1, samples=1, sample_ns=1)

PEER = """
import floor

NAME, DISTS, IMPORT, NOTES = "tiny", ["tiny"], "import json", "the floor, installed"
Peer = floor.Peer
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Framework:
    """A framework whose package exists only here; it borrows pydantic from where the tests run."""
    wheel = tmp_path / "wheels" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    files = {
        "tiny_peer.py": PEER,
        "tiny.pth": sysconfig.get_path("purelib") + "\n",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, "tiny-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return Framework(
        "tiny", "tiny_peer", _requirements(wheel, hashlib.sha256(wheel.read_bytes()).hexdigest())
    )


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _requirements(wheel: Path, digest: str) -> Path:
    file = wheel.parent / "tiny.txt"
    file.write_text(f"--no-index\n--find-links {wheel.parent.as_uri()}\ntiny==1.0 --hash=sha256:{digest}\n")
    return file


@pytest.mark.slow
def test_an_environment_is_made_once_and_what_is_in_it_can_be_measured(
    tiny: Framework, tmp_path: Path
) -> None:
    folder = tmp_path / "environments"
    assert not is_ready(tiny, folder)
    python = python_of(tiny, folder)
    assert is_ready(tiny, folder)
    assert python.is_relative_to(folder / "tiny")
    subject = Subject(tiny, python, about(tiny, python))
    assert subject.about == ({"tiny": "1.0"}, "the floor, installed", "import json")
    for row in ROWS:
        if row.name in ("W1", "import"):
            result = measure(row, [subject], ONCE)["tiny"]
            assert not result.void
            assert result.figure is not None
            assert result.figure > 0

    left = folder / "tiny" / "left"
    left.touch()
    assert python_of(tiny, folder) == python
    assert left.exists()
    assert tiny.requirements is not None
    tiny.requirements.write_text(tiny.requirements.read_text() + "# changed\n")
    assert not is_ready(tiny, folder)
    python_of(tiny, folder)
    assert not left.exists()


@pytest.mark.slow
def test_what_is_not_as_pinned_is_not_installed(tiny: Framework, tmp_path: Path) -> None:
    assert tiny.requirements is not None
    _requirements(tiny.requirements.parent / "tiny-1.0-py3-none-any.whl", "0" * 64)
    with pytest.raises(Unavailable, match=r"^tiny: cannot install it: .+$") as refused:
        python_of(tiny, tmp_path / "environments")
    assert "\n" not in str(refused.value)
    assert not is_ready(tiny, tmp_path / "environments")


@pytest.mark.integration
def test_a_place_that_cannot_be_written_to_is_told(tiny: Framework, tmp_path: Path) -> None:
    (tmp_path / "environments").write_text("a file, no folder")
    with pytest.raises(Unavailable, match=r"^tiny: cannot make its environment: "):
        python_of(tiny, tmp_path / "environments")


@pytest.mark.integration
def test_flyball_runs_where_the_command_does() -> None:
    assert is_ready(FLYBALL)
    assert python_of(FLYBALL) == Path(sys.executable)
    told = about(FLYBALL, Path(sys.executable))
    assert list(told.versions) == ["flyball"]
    assert told.imported.startswith("from flyball import")


@pytest.mark.integration
def test_a_framework_that_is_not_there_is_told_in_a_line() -> None:
    gone = Framework("gone", "bench.peers.gone_peer", None)
    with pytest.raises(
        Unavailable, match=r"^gone: cannot be imported: ModuleNotFoundError: No module .*gone_peer'$"
    ):
        about(gone, Path(sys.executable))


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_each_peer_is_pinned_by_hash_and_names_no_index(peer: Framework) -> None:
    assert peer.requirements is not None
    lines = [line for line in peer.requirements.read_text().splitlines() if not line.startswith("#")]
    pins = [line for line in lines if not line.startswith(" ")]
    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
    assert "://" not in "\n".join(lines)
    wanted = peer.requirements.with_suffix(".in").read_text().strip().partition("[")[0]
    assert any(pin.startswith(f"{wanted}==") for pin in pins)


@pytest.mark.integration
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_each_peer_has_its_file(peer: Framework) -> None:
    file = Path(__file__).resolve().parents[2] / (peer.module.replace(".", "/") + ".py")
    subprocess.run([sys.executable, "-m", "py_compile", str(file)], check=True)


def test_peers_are_chosen_by_name() -> None:
    assert chosen_peers([]) == list(PEERS)
    assert [peer.name for peer in chosen_peers(["agno", "pydantic-ai"])] == ["pydantic-ai", "agno"]
    with pytest.raises(
        ValueError, match="there is no peer 'crew'; there are pydantic-ai, openai-agents, agno"
    ):
        chosen_peers(["crew"])
