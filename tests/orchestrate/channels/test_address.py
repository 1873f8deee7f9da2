"""Where somebody talks: two places never have one name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flyball.orchestrate.channels import Address
from flyball.orchestrate.permissions import channel_of
from flyball.orchestrate.places import place_name

_odd = st.sampled_from(["user:a", "T/user:a", "x/thread:T"])
_parts = st.text("ab/%25F:", max_size=5) | st.text(max_size=5) | _odd
_addresses = st.builds(Address, _parts, _parts, _parts, _parts)


def _conversation(address: Address) -> tuple[str, ...]:
    """What a conversation is one of."""
    within = ("thread", address.thread_id) if address.thread_id else ("user", address.user_id)
    return (address.channel_type, address.channel_id, *within)


@given(_addresses, _addresses)
def test_two_places_never_have_one_name(one: Address, two: Address) -> None:
    assert (one.conversation == two.conversation) == (_conversation(one) == _conversation(two))
    same_channel = (one.channel_type, one.channel_id) == (two.channel_type, two.channel_id)
    assert (one.channel == two.channel) == same_channel


@given(st.lists(_parts, min_size=1), st.lists(_parts, min_size=1))
def test_the_parts_can_be_read_off_a_name(one: list[str], two: list[str]) -> None:
    assert (place_name(*one) == place_name(*two)) == (one == two)


@given(_addresses.filter(lambda one: bool(one.channel_type and one.channel_id)))
def test_a_loop_s_channel_is_its_address_s(address: Address) -> None:
    assert channel_of(address.metadata()) == address.channel


def test_plain_ids_stand_as_they_are() -> None:
    address = Address("slack", "general #1", "ann@x.org", "", "m1")
    assert (address.channel, address.conversation) == (
        "slack/general #1",
        "slack/general #1/user:ann@x.org",
    )


def test_what_was_one_conversation_is_two() -> None:
    assert Address("slack", "x", "eve", "T/user:ann").conversation == "slack/x/thread:T%2Fuser:ann"
    assert Address("slack", "x/thread:T", "ann").conversation == "slack/x%2Fthread:T/user:ann"
    assert Address("sl/ack", "a").channel != Address("sl", "ack/a").channel
