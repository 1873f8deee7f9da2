"""Events and effects as bytes: all of them come back equal, and nothing else comes back at all."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core import effects, events
from flyball.core.codec import decode_event, encode_event
from flyball.core.errors import JournalCorrupt, JournalTooNew
from tests.effort import examples
from tests.strategies import EFFECTS, EVENTS, all_events


def test_every_event_and_every_effect_has_a_strategy() -> None:
    assert set(EVENTS) == set(get_args(events.Event))
    assert set(EFFECTS) == {*get_args(effects.Effect), *get_args(effects.FlowEffect)}


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_comes_back_equal(kind: type[Any]) -> None:
    @examples(40)
    @given(EVENTS[kind])
    def comes_back(event: events.Event) -> None:
        back = decode_event(encode_event(event))
        assert type(back) is kind
        assert back == event
        assert encode_event(back) == encode_event(event)

    comes_back()


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", EFFECTS, ids=lambda kind: kind.__name__)
def test_an_effect_comes_back_equal(kind: type[Any]) -> None:
    @given(EFFECTS[kind])
    def comes_back(effect: effects.Effect | effects.FlowEffect) -> None:
        data = msgspec.json.encode(effect)
        back: Any = msgspec.json.decode(data, type=effects.Effect | effects.FlowEffect)
        assert type(back) is kind
        assert back == effect

    comes_back()


@given(all_events, st.data())
def test_truncated_bytes_are_corrupt(event: events.Event, data: st.DataObject) -> None:
    encoded = encode_event(event)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(JournalCorrupt) as caught:
        decode_event(encoded[:cut], "loop 7, event 3")
    assert "loop 7, event 3" in str(caught.value)


@given(st.binary(max_size=40))
def test_arbitrary_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises(JournalCorrupt):
        decode_event(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"event":"unheard_of"}',
        b'{"event":"unheard_of","at":"soon"}',
        b'{"event":"","at":1.0}',
        b'{"event":"Unheard of","at":1.0}',
        b'{"event":7,"at":1.0}',
        b'{"event":"unheard_of","at":1.0}{}',
        b'{"event":"ended","at":1.0}',
        b'{"event":"ended","at":1.0,"outcome":"magic"}',
        b'{"event":"ended","at":"soon","outcome":"success"}',
        b'{"event":"time_passed","at":null}',
        b'{"event":"resumed","at":1.0,"version":"1","epoch":1}',
        b'{"event":"time_passed","at":1.0}{}',
        b'{"event":"reopened","at":1.0,"by":"\xff"}',
        b"[" * 100_000,
        b'{"event":"turn_settled","at":1.0,"turn":1,"accepted":true,"output":' + b"[" * 100_000,
        b'{"event":"started","at":1.0,"version":1,"loop_id":"l","spec":{"tool_choice":{"mode":"function"}}}',
    ],
)
def test_what_is_no_event_is_corrupt(data: bytes) -> None:
    with pytest.raises(JournalCorrupt):
        decode_event(data)


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", [events.Started, events.Forked, events.Resumed])
def test_a_newer_version_is_refused(kind: type[Any]) -> None:
    @examples(10)
    @given(EVENTS[kind], st.integers(events.VERSION + 1, 1 << 40))
    def refused(event: Any, version: int) -> None:
        newer = msgspec.structs.replace(event, version=version)
        with pytest.raises(JournalTooNew) as caught:
            decode_event(encode_event(newer))
        assert caught.value.details == {"version": version, "supported": events.VERSION}

    refused()


def test_a_newer_version_is_told_also_where_nothing_else_is_understood() -> None:
    data = b'{"event":"begun","version":99,"when":"then"}'
    with pytest.raises(JournalTooNew, match="99"):
        decode_event(data)


@given(st.from_regex("[a-z][a-z0-9_]{0,63}", fullmatch=True), all_events)
def test_a_kind_that_is_not_known_is_a_newer_ones(kind: str, event: events.Event) -> None:
    known = {known.__struct_config__.tag for known in EVENTS}
    whole = msgspec.json.decode(encode_event(event)) | {"event": f"{kind}_" if kind in known else kind}
    with pytest.raises(JournalTooNew) as caught:
        decode_event(msgspec.json.encode(whole), "loop 7, event 3")
    assert caught.value.details == {"kind": whole["event"], "supported": events.VERSION}
    assert "loop 7, event 3" in str(caught.value)
    assert "upgrade" in str(caught.value)


def test_the_ten_stages_and_which_of_them_are_final() -> None:
    assert [stage.value for stage in events.Stage if stage.is_terminal] == ["complete", "failed", "cancelled"]
    assert len(events.Stage) == 10
