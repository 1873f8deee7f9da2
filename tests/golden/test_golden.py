"""Journals that earlier releases have written come to what they came to then."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from flyball.core.codec import decode_event, encode_event
from flyball.core.events import VERSION, Event
from tests.golden.facts import FOLDER, facts, kept

KEPT = {file.stem: file for file in sorted(FOLDER.glob("v*.jsonl"))}


def test_there_are_some_of_every_version() -> None:
    assert set(KEPT) == {f"v{number}" for number in range(1, VERSION + 1)}


@pytest.mark.parametrize("version", KEPT)
def test_what_was_written_means_what_it_meant(version: str) -> None:
    for golden in kept(KEPT[version]):
        events = [decode_event(bytes(raw), golden.name) for raw in golden.events]
        now = facts(events)
        assert {name: now.get(name) for name in golden.came_to} == golden.came_to, golden.name
        # And it is still written in words that are read as the same.
        assert [decode_event(encode_event(event)) for event in events] == events, golden.name


def test_every_kind_of_event_is_in_one_that_was_kept() -> None:
    """Who adds a kind of event adds a journal that has it: see `facts`."""
    kinds = {str(kind.__struct_config__.tag) for kind in get_args(Event)}
    found = {event["event"] for event in _all_events()}
    assert kinds - found == set()


def test_what_loops_are_about_is_in_some_that_were_kept() -> None:
    """On a channel, as somebody, with what filters found, under another, and waiting for a result."""
    events = _all_events()
    assert any("channel_id" in event.get("metadata", ()) for event in events)
    assert any(event.get("identity") for event in events)
    assert any(event.get("violations") for event in events)
    assert any(event.get("parent_loop_id") for event in events)
    assert any(event.get("result", {}).get("status") == "deferred" for event in events)


def _all_events() -> list[dict[str, Any]]:
    """All events that were kept, of all versions, as they were written."""
    everything = [golden for file in KEPT.values() for golden in kept(file)]
    return [msgspec.json.decode(raw) for golden in everything for raw in golden.events]
