"""The workloads and the floor are everybody's: changing them here would make the figures mean nothing."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("workloads.py", "01ae72657fd791c61d545ad7df37b4558ae9cfdeeff088522d40faa4ad566d53"),
        ("floor.py", "ce48ded65deafa3baf36204bf351d80c0a74966916905c2e07e3e89b03f427a0"),
    ],
)
def test_the_copies_are_as_they_came(name: str, digest: str) -> None:
    assert sha256((HERE / name).read_bytes()).hexdigest() == digest
