"""A request and in what it differs from another give it back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.around import Sent
from flyball.core.errors import JournalCorrupt
from flyball.core.messages import user
from flyball.inference.middleware.difference import can_be_recorded, difference, restored
from flyball.inference.request import OutputObject, Request
from tests.strategies import choices, definitions, json_objects, maybe, messages, names, settings, texts

_requests = st.builds(
    Request,
    messages=st.lists(messages, min_size=1, max_size=4).map(tuple),
    tools=st.lists(definitions, max_size=2, unique_by=lambda tool: tool.name).map(tuple),
    settings=settings,
    tool_choice=maybe(choices),
    output=maybe(st.builds(OutputObject, schema=json_objects, name=names)),
    grammar=maybe(texts),
    allows_text=st.booleans(),
    id=texts,
    deadline=maybe(st.floats(0, 4e9)),
)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Request, Request]:
    """A request, and another that has some of its fields from somewhere else."""
    one, other = draw(_requests), draw(_requests)
    fields = draw(st.sets(st.sampled_from(Request.__struct_fields__)))
    return one, msgspec.structs.replace(one, **{name: getattr(other, name) for name in fields})


@given(changed())
def test_there_and_back(pair: tuple[Request, Request]) -> None:
    made, sent = pair
    found = difference(made, sent)
    assert can_be_recorded(made, sent)
    again = msgspec.json.decode(msgspec.json.encode(found), type=Sent)
    assert restored(made, again) == sent
    assert (found == Sent()) is (made == sent)


@given(_requests)
def test_a_request_differs_from_itself_in_nothing(request: Request) -> None:
    assert difference(request, request) == Sent()
    assert restored(request, Sent()) is request


@given(changed(), st.lists(messages, max_size=3))
def test_edits_may_be_of_other_messages(pair: tuple[Request, Request], others: list[object]) -> None:
    made, sent = pair
    against = msgspec.structs.replace(made, messages=tuple(others))
    edits = difference(against, sent).edits
    found = msgspec.structs.replace(difference(made, sent), edits=edits)
    assert restored(made, found, against.messages) == sent


def test_what_cannot_be_read_is_said_to_be_so() -> None:
    with pytest.raises(JournalCorrupt, match="cannot be read"):
        restored(Request((user("hi"),)), Sent(rest={"output": 7}))
