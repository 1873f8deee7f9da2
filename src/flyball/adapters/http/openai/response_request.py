"""A request for a response, as it is read: what is asked of the system, and what is told again."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.chat_request import read_metadata, with_user
from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.openai.formats import Format, read_format
from flyball.adapters.http.openai.reading import fields_of, reading, refuse_these, required, required_text
from flyball.adapters.http.openai.response_items import Items, read_items
from flyball.adapters.http.openai.sampling import read_hints
from flyball.adapters.http.openai.tools import read_tools, write_choice, write_tools
from flyball.core.forms.fields import Fields
from flyball.core.messages import Message, Role, Text
from flyball.orchestrate.contracts import SystemRequest

PREFIX = "resp_"
_IMPOSSIBLE = {
    "background": "a response is waited for, or streamed",
    "conversation": "no conversations are kept: use previous_response_id",
    "prompt": "no prompts are kept: give instructions",
    "top_logprobs": "no probabilities of tokens are given",
}


class ResponseRequest(Struct, frozen=True):
    """What a client asks for.

    `request` has the messages that are in the request itself; `previous` is the loop whose response it goes
    on from, if it does, and `items` what it says there. `echo` is told again with every response.
    """

    model: str
    request: SystemRequest
    items: Items
    previous: str = ""
    format: Format = Format()
    stream: bool = False
    live: bool = False
    echo: dict[str, Any] = {}


def read_response(body: object) -> ResponseRequest:
    """A request for a response, from its body as JSON.

    Raises:
        Refused: it is none, or asks for what cannot be done; `param` names the field.
    """
    with reading():
        fields = fields_of(body)
        model = required_text(fields, "model")
        items = read_items(required(fields, "input"), fields.place("input"))
        refuse_these(fields, _IMPOSSIBLE)
        instructions, previous = fields.text("instructions"), fields.text("previous_response_id")
        text = Fields(fields.any("text") or {}, fields.place("text"))
        form = read_format(text.any("format"), text.place("format"), nested=False)
        parallel = fields.peek("parallel_tool_calls") is not False
        offered = read_tools(fields, nested=False)
        reasoning = Fields(fields.any("reasoning") or {}, fields.place("reasoning"))
        hints = read_hints(fields, "max_output_tokens", effort=reasoning.any("effort"))
        options = Fields(fields.any("stream_options") or {}, fields.place("stream_options"))
        metadata = read_metadata(fields)
        told = [one for one in (instructions, *items.told) if one]
        request = SystemRequest(
            messages=(*_system(told), *items.messages),
            hints=hints,
            output=form.contract,
            caller_tools=offered.tools,
            tool_choice=offered.choice,
            metadata=with_user(metadata, fields),
        )
        echo: dict[str, Any] = {
            "instructions": instructions or None,
            "metadata": metadata or {},
            "max_output_tokens": hints.max_tokens,
            "parallel_tool_calls": parallel,
            "previous_response_id": previous or None,
            "reasoning": {"effort": hints.reasoning_effort, "summary": None},
            "temperature": hints.temperature,
            "text": {"format": form.told or {"type": "text"}},
            "tool_choice": write_choice(offered.choice),
            "tools": write_tools(offered.tools),
            "top_p": hints.top_p,
            "truncation": "disabled",
        }
        loop_id = _loop_of(previous)
        stream, live = fields.flag("stream") is True, options.flag("live") is True
        return ResponseRequest(model, request, items, loop_id, form, stream, live, echo)


def _system(told: list[str]) -> tuple[Message, ...]:
    return (Message(Role.SYSTEM, tuple([Text(text) for text in told])),) if told else ()


def _loop_of(previous: str) -> str:
    loop_id = previous.removeprefix(PREFIX)
    if previous and (not loop_id or loop_id == previous):
        raise no_previous(previous)
    return loop_id


def no_previous(response_id: str) -> Refused:
    """The refusal of a response to go on from, which there is not."""
    return Refused(
        f"Previous response with id {response_id!r} not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


_PARAMS = (
    (re.compile(r"^caller_tools"), "tools"),
    (re.compile(r"^messages"), "input"),
    (re.compile(r"^output\.schema"), "text.format.schema"),
    (re.compile(r"^output"), "text.format"),
    (re.compile(r"^hints\.max_tokens"), "max_output_tokens"),
    (re.compile(r"^hints\.reasoning_effort"), "reasoning.effort"),
    (re.compile(r"^hints\."), ""),
)


def response_param(field: str) -> str:
    """OpenAI's name for a field of a SystemRequest."""
    for pattern, name in _PARAMS:
        field = pattern.sub(name, field)
    return field
