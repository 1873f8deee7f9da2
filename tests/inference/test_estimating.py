"""How large a call will be, before anybody has counted."""

from __future__ import annotations

from flyball.core.messages import Text, user
from flyball.core.settings import ModelSettings
from flyball.core.tokens import estimate_tokens
from flyball.core.tools import ToolDefinition
from flyball.inference.estimating import call_tokens, input_tokens
from flyball.inference.request import OutputObject, Request

MESSAGES = (user("how many words are in this sentence?"),)


def test_what_goes_in_is_more_than_messages() -> None:
    plain = Request(MESSAGES)
    assert input_tokens(plain) == estimate_tokens(MESSAGES)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = Request(MESSAGES, (ToolDefinition("weather", schema, "the weather"),))
    output = Request(MESSAGES, output=OutputObject(schema))
    assert input_tokens(tools) > input_tokens(output) > input_tokens(plain)


def test_what_may_come_out_counts_where_it_is_said() -> None:
    request = Request(MESSAGES, settings=ModelSettings(max_tokens=500))
    assert call_tokens(request) == input_tokens(request) + 500
    assert call_tokens(Request(MESSAGES)) == input_tokens(Request(MESSAGES))


def test_a_tokenizer_of_ones_own_counts() -> None:
    assert input_tokens(Request((user([Text("a b"), Text("c")]),)), lambda text: len(text.split())) == 3
