"""A request for a chat completion, as it is read: what is asked of the system, and what is told again."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.chat_messages import read_messages
from flyball.adapters.http.openai.errors import unsupported
from flyball.adapters.http.openai.formats import Format, read_format
from flyball.adapters.http.openai.reading import fields_of, reading, refuse_these, required_text
from flyball.adapters.http.openai.sampling import read_hints
from flyball.adapters.http.openai.tools import read_tools
from flyball.core.forms.fields import Fields, items, malformed
from flyball.orchestrate.contracts import SystemRequest

_IMPOSSIBLE = {
    "functions": "it is gone: use tools",
    "function_call": "it is gone: use tool_choice",
    "logprobs": "no probabilities of tokens are given",
    "top_logprobs": "no probabilities of tokens are given",
    "logit_bias": "no tokens can be made more likely",
    "audio": "answers are text",
    "web_search_options": "there is no search here, but what an agent brings itself",
}


class ChatRequest(Struct, frozen=True):
    """What a client asks for.

    `model` is the name of an agent. `live`: text is wanted as it comes, also where an agent may go on to call
    tools of its own; see `telling`.
    """

    model: str
    request: SystemRequest
    format: Format = Format()
    stream: bool = False
    include_usage: bool = False
    live: bool = False
    metadata: dict[str, Any] | None = None


def read_chat(body: object) -> ChatRequest:
    """A request for a chat completion, from its body as JSON.

    Raises:
        Refused: it is none, or asks for what cannot be done; `param` names the field.
    """
    with reading():
        fields = fields_of(body)
        model = required_text(fields, "model")
        messages = read_messages(items(fields.any("messages"), fields.place("messages")))
        refuse_these(fields, _IMPOSSIBLE)
        _check_one_text(fields)
        form = read_format(fields.any("response_format"), fields.place("response_format"), nested=True)
        offered = read_tools(fields, nested=True)
        hints = read_hints(
            fields, "max_completion_tokens", "max_tokens", effort=fields.any("reasoning_effort")
        )
        options = Fields(fields.any("stream_options") or {}, fields.place("stream_options"))
        metadata = read_metadata(fields)
        return ChatRequest(
            model,
            SystemRequest(
                messages=messages,
                hints=hints,
                output=form.contract,
                caller_tools=offered.tools,
                tool_choice=offered.choice,
                metadata=with_user(metadata, fields),
            ),
            form,
            fields.flag("stream") is True,
            options.flag("include_usage") is True,
            options.flag("live") is True,
            metadata,
        )


def _check_one_text(fields: Fields) -> None:
    if (number := fields.whole("n")) not in (None, 1):
        raise unsupported("n", f"one answer is given, and not {number}: ask again for more")
    for value, where in fields.items("modalities"):
        if value != "text":
            raise malformed(where, "text, the only kind of answer that there is", value)


def read_metadata(fields: Fields) -> dict[str, Any] | None:
    """`metadata`: texts by names.

    Raises:
        InvalidMessage: they are none.
    """
    metadata = fields.mapping("metadata")
    for key, value in (metadata or {}).items():
        if not isinstance(value, str):
            raise malformed(f"{fields.place('metadata')}.{key}", "text", value)
    return metadata


def with_user(metadata: dict[str, Any] | None, fields: Fields) -> dict[str, Any] | None:
    """The metadata that tools are given: the client's, and for whom it asks, if it says so."""
    told = {name: text for name in ("user", "safety_identifier") if (text := fields.text(name))}
    return {**told, **(metadata or {})} or None


_PARAMS = (
    (re.compile(r"caller_tools(\[\d+\])\."), r"tools\1.function."),
    (re.compile(r"^caller_tools"), "tools"),
    (re.compile(r"^output\.schema"), "response_format.json_schema.schema"),
    (re.compile(r"^output"), "response_format"),
    (re.compile(r"^hints\."), ""),
)


def chat_param(field: str) -> str:
    """OpenAI's name for a field of a SystemRequest."""
    for pattern, name in _PARAMS:
        field = pattern.sub(name, field)
    return field
