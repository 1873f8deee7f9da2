"""Requests as Chat Completions takes them.

What the protocol has no place for goes where it is understood: images that a tool or the model itself gave
follow in a user's message, as soon as one may stand there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never, cast

from flyball.core.encodable import as_text
from flyball.core.errors import UserError
from flyball.core.messages import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.engines.openai.dialect import Dialect, Schemas
from flyball.engines.openai.effort import effort_of
from flyball.engines.openai.parts import Functions, JSONObject, audio, form, paper_of
from flyball.engines.wire.calls import arguments_of, fitting_id, fitting_name
from flyball.engines.wire.media import refuse
from flyball.inference.offer import Offer, mode_of, offer_of
from flyball.inference.request import OutputObject, Request

DETAILS = "reasoning_details"
"""What OpenRouter wants back unchanged of a model's thoughts."""
MORE = "extra_content"
"""What a server that speaks for another vendor's model wants back unchanged of a call."""
_FROM_ABOVE = "Shown above:"


def chat_body(
    request: Request, model: str, dialect: Dialect, *, stream: bool, functions: Functions | None = None
) -> JSONObject:
    """The body of a call. What is unset is left to the server; `options` goes over everything.

    Raises:
        UserError: a part that this protocol cannot carry.
        ToolNotFound: the one tool that must be called is not there.
    """
    body: JSONObject = {"model": model, "messages": chat_messages(request.messages, dialect)}
    settings = request.settings
    if settings.max_tokens is not None:
        body[dialect.max_tokens] = settings.max_tokens
    if (temperature := settings.effective_temperature) is not None:
        body["temperature"] = temperature
    if settings.top_p is not None:
        body["top_p"] = settings.top_p
    if settings.seed is not None:
        body["seed"] = settings.seed
    if settings.stop:
        body["stop"] = list(settings.stop)
    if dialect.effort and (effort := effort_of(settings, model)) is not None:
        body["reasoning_effort"] = effort
    if request.tools:
        strict = dialect.schemas is Schemas.STRICT
        _put_tools(body, offer_of(request), dialect, functions or Functions(strict=strict))
    if request.grammar is not None:
        _put_grammar(body, request.grammar, dialect)
    elif request.output is not None:
        _put_schema(body, request.output, dialect)
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body | settings.options if settings.options else body


def chat_messages(messages: Iterable[Message], dialect: Dialect) -> list[JSONObject]:
    """A history in the protocol's messages."""
    told: list[JSONObject] = []
    shown: list[Image] = []
    for message in messages:
        if not shown and len(message.parts) == 1 and (short := _short(message.parts[0], dialect)) is not None:
            told.append(short)
            continue
        if shown and message.role is not Role.TOOL:
            if message.role is Role.USER:
                told.append(_user((Text(_FROM_ABOVE), *shown, *message.parts), message.name))
                shown = []
                continue
            told.append(_user((Text(_FROM_ABOVE), *shown), None))
            shown = []
        if message.role is Role.TOOL:
            for result in message.tool_results:
                told.append(_result(result))
                shown += result.images
        elif message.role is Role.ASSISTANT:
            told.append(_assistant(message, dialect))
            shown += [part for part in message.parts if type(part) is Image]
        elif message.role is Role.USER:
            told.append(_user(message.parts, message.name))
        elif told and told[-1]["role"] == dialect.system_role and len(told) == 1:
            # Templates of open models take one system message.
            told[0]["content"] += "\n\n" + message.text
        else:
            told.append({"role": dialect.system_role, "content": message.text})
    if shown:
        told.append(_user((Text(_FROM_ABOVE), *shown), None))
    return told


def _short(part: Part, dialect: Dialect) -> JSONObject | None:
    """A message that is one call or one result, as most of a long history are; None for any other."""
    kind = type(part)
    if kind is ToolCall:
        return {"role": "assistant", "tool_calls": [_call(cast("ToolCall", part), dialect)]}
    if kind is ToolResult and not cast("ToolResult", part).images:
        return _result(cast("ToolResult", part))
    return None


def _user(parts: Sequence[Part], name: str | None) -> JSONObject:
    first = parts[0] if len(parts) == 1 else None
    if type(first) is Text or type(first) is Retry:
        told: JSONObject = {"role": "user", "content": first.text}
    else:
        told = {"role": "user", "content": [_content(part) for part in parts]}
    if name and name.isascii() and name.isidentifier():
        told["name"] = name
    return told


def _content(part: Part) -> JSONObject:
    match part:
        case Text() | Retry():
            return {"type": "text", "text": part.text}
        case Image():
            url: JSONObject = {"url": part.url}
            if part.detail is not None:
                url["detail"] = part.detail
            return {"type": "image_url", "image_url": url}
        case Audio():
            return audio(part)
        case Document():
            return _document(part)
        case Thinking() | ToolCall() | ToolResult():
            raise refuse(part, "openai", "in a user's message")
        case _:
            assert_never(part)


def _document(part: Document) -> JSONObject:
    paper = paper_of(part)
    if paper.text is not None:
        return {"type": "text", "text": paper.text}
    if paper.data is None:
        raise refuse(
            part, "openai", "by an address in this protocol: give its data, or use the Responses API"
        )
    return {"type": "file", "file": {"filename": paper.name, "file_data": paper.data}}


def _assistant(message: Message, dialect: Dialect) -> JSONObject:
    told: JSONObject = {"role": "assistant"}
    texts: list[str] = []
    calls: list[JSONObject] = []
    thoughts: list[Thinking] = []
    for part in message.parts:
        kind = type(part)
        if kind is ToolCall:
            calls.append(_call(cast("ToolCall", part), dialect))
        elif kind is Text:
            texts.append(cast("Text", part).text)
        elif kind is Thinking:
            thoughts.append(cast("Thinking", part))
    if calls:
        told["tool_calls"] = calls
    if texts or not calls:
        told["content"] = "".join(texts)
    if thoughts and dialect.reasoning is not None:
        if words := "".join([thought.text for thought in thoughts]):
            told[dialect.reasoning] = words
        details = [
            detail
            for thought in thoughts
            if thought.provider_data
            for detail in thought.provider_data.get(DETAILS, ())
        ]
        if details:
            told[DETAILS] = details
    return told


def _call(call: ToolCall, dialect: Dialect) -> JSONObject:
    args = call.args_json
    if dialect.written:
        # The template of an open model takes arguments apart: what is no JSON would fail there.
        args = as_text(arguments_of(call))
    told: JSONObject = {
        "id": fitting_id(call.id),
        "type": "function",
        "function": {"name": fitting_name(call.name), "arguments": args or "{}"},
    }
    if call.provider_data and MORE in call.provider_data:
        told[MORE] = call.provider_data[MORE]
    return told


def _result(result: ToolResult) -> JSONObject:
    return {"role": "tool", "tool_call_id": fitting_id(result.call_id), "content": result.text}


def _put_tools(body: JSONObject, offer: Offer, dialect: Dialect, functions: Functions) -> None:
    if not offer.tools:
        return
    body["tools"] = [{"type": "function", "function": functions(tool)} for tool in offer.tools]
    mode = mode_of(offer)
    if mode == "function":
        body["tool_choice"] = {"type": "function", "function": {"name": offer.only}}
    elif mode == "required" and dialect.must_call:
        body["tool_choice"] = "required"
    if dialect.parallel and any(tool.sequential for tool in offer.tools):
        body["parallel_tool_calls"] = False


def _put_schema(body: JSONObject, output: OutputObject, dialect: Dialect) -> None:
    if dialect.schemas is Schemas.NONE:
        return
    if dialect.schemas is Schemas.OBJECT:
        body["response_format"] = {"type": "json_object"}
        return
    schema = form(output, strict=dialect.schemas is Schemas.STRICT)
    body["response_format"] = {"type": "json_schema", "json_schema": schema}


def _put_grammar(body: JSONObject, grammar: str, dialect: Dialect) -> None:
    if not dialect.grammar:
        raise UserError(f"{dialect.name} cannot hold a model to a grammar: give a schema, or another server")
    *outer, last = dialect.grammar
    for key in outer:
        body = body.setdefault(key, {})
    body[last] = grammar
