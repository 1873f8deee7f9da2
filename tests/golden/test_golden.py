"""Journals that earlier releases have written come to what they came to then."""

from __future__ import annotations

import msgspec
import pytest

from flyball.core.codec import decode_event, encode_event
from flyball.core.events import VERSION
from tests.golden.facts import FOLDER, Golden, facts

KEPT = {file.stem: file for file in sorted(FOLDER.glob("v*.jsonl"))}


def test_there_are_some_of_every_version() -> None:
    assert set(KEPT) == {f"v{number}" for number in range(1, VERSION + 1)}


@pytest.mark.parametrize("version", KEPT)
def test_what_was_written_means_what_it_meant(version: str) -> None:
    for line in KEPT[version].read_bytes().splitlines():
        golden = msgspec.json.decode(line, type=Golden)
        events = [decode_event(bytes(raw), golden.name) for raw in golden.events]
        assert facts(events) == golden.came_to, golden.name
        # And it is still written in words that are read as the same.
        assert [decode_event(encode_event(event)) for event in events] == events, golden.name
