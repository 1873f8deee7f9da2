"""Small files for the tests: GGUF files that are whole, and wheels that pip takes."""

from __future__ import annotations

import hashlib
import random
import struct
import zipfile
from pathlib import Path
from typing import Any


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, list):
        return struct.pack("<I", 9) + _array(value)  # pyright: ignore[reportUnknownArgumentType]
    return struct.pack("<IQ", 10, value)


def _array(items: list[Any]) -> bytes:
    count = len(items)
    if items and isinstance(items[0], list):
        return struct.pack("<IQ", 9, count) + b"".join(_array(item) for item in items)
    if items and isinstance(items[0], str):
        return struct.pack("<IQ", 8, count) + b"".join(_string(item) for item in items)
    return struct.pack("<IQ", 4, count) + b"".join(struct.pack("<I", item) for item in items)


def gguf(
    elements: int = 1000, facts: dict[str, Any] | None = None, *, kind: int = 0, version: int = 3
) -> bytes:
    """A whole GGUF file with one tensor of so many 32-bit numbers."""
    facts = {"general.architecture": "tiny", "tiny.context_length": 512, **(facts or {})}
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(facts))
    head += b"".join(_string(key) + _value(value) for key, value in facts.items())
    head += _string("weights") + struct.pack("<IQIQ", 1, elements, kind, 0)
    alignment = facts.get("general.alignment", 32)
    head += b"\0" * (-len(head) % alignment)
    return head + random.Random(7).randbytes(4 * elements)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(folder: Path, package: str, version: str, members: dict[str, bytes]) -> Path:
    """A wheel with these members, as pip would find it in an index."""
    name = package.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(f"{name}/{member}", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path
