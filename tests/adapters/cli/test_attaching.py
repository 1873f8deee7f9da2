"""Files as what is attached: text as text, all else as what it is."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.cli import attaching
from flyball.adapters.cli.attaching import attachment_in
from flyball.core.errors import UserError
from flyball.core.messages import Audio, Document, Image, Text
from flyball.orchestrate.channels import part_of


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", b"words", Text),
        ("a.ts", b"let x = 1", Text),
        ("a.svg", b"<svg/>", Text),
        ("a", "\ufeffgr\u00fc\u00dfe".encode(), Text),
        ("a.png", b"\x89PNG\0", Image),
        ("a.wav", b"RIFF\0\xff", Audio),
        ("a.pdf", b"%PDF\0\xff", Document),
        ("a.strange", b"\0\xff", Document),
    ],
)
def test_files_are_what_a_model_reads(tmp_path: Path, name: str, data: bytes, kind: type) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    attachment = attachment_in(file)
    assert (attachment.name, attachment.size) == (name, len(data))
    assert type(part_of(attachment)) is kind


@given(st.binary(min_size=1))
def test_nothing_is_lost(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("files") / "data.bin"
    file.write_bytes(data)
    attachment = attachment_in(file)
    is_text = not attachment.mime_type
    kept = attachment.content.encode() if is_text else b64decode(attachment.content)
    assert kept == (data.removeprefix(b"\xef\xbb\xbf") if is_text else data)


def test_files_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (tmp_path / "none", tmp_path):
        with pytest.raises(UserError, match="cannot be read"):
            attachment_in(wrong)
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(UserError, match="is empty"):
        attachment_in(file)
    file.write_bytes(b"four")
    monkeypatch.setattr(attaching, "_MOST", 3)
    with pytest.raises(UserError, match="more than 3 bytes"):
        attachment_in(file)
