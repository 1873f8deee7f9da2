"""Requests as the Responses API takes them: a list of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

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
from flyball.engines.openai.effort import effort_of
from flyball.engines.openai.parts import Functions, JSONObject, form, paper_of
from flyball.engines.wire.calls import fitting_id, fitting_name
from flyball.engines.wire.media import refuse
from flyball.inference.offer import Offer, mode_of, offer_of
from flyball.inference.request import Request

PHASE = "phase"
"""Where a text has what it is to the model: a comment on the way, or the answer."""
_FROM_ABOVE = "Shown above:"


def item_key(provider: str) -> str:
    """Where a part has the item that it was, which goes back as it came, and only to who made it: nobody else
    can open what is encrypted in it.
    """
    return f"{provider}_item"


def responses_body(
    request: Request,
    model: str,
    *,
    thinks: bool,
    stream: bool,
    functions: Functions | None = None,
    provider: str = "openai",
) -> JSONObject:
    """The body of a call. What is unset is left to the server; `options` goes over everything.

    The API knows no seed: one is left out.

    Raises:
        UserError: a part that this API cannot carry; stop sequences or a grammar, which it does not know.
        ToolNotFound: the one tool that must be called is not there.
    """
    settings = request.settings
    if settings.stop:
        raise UserError("OpenAI's Responses API knows no stop sequences: leave them out, or use api='chat'")
    if request.grammar is not None:
        raise UserError("OpenAI cannot hold a model to a grammar: give a schema instead")
    body: JSONObject = {
        "model": model,
        "input": list(input_items(request.messages, provider)),
        "store": False,
    }
    if settings.max_tokens is not None:
        body["max_output_tokens"] = settings.max_tokens
    if (temperature := settings.effective_temperature) is not None:
        body["temperature"] = temperature
    if settings.top_p is not None:
        body["top_p"] = settings.top_p
    if thinks:
        body["include"] = ["reasoning.encrypted_content"]
        effort = effort_of(settings, model)
        if effort is not None:
            body["reasoning"] = {"effort": effort}
        if settings.thinking or settings.thinking_budget:
            body.setdefault("reasoning", {})["summary"] = "auto"
    if request.tools:
        _put_tools(body, offer_of(request), functions or Functions(strict=True))
    if request.output is not None:
        body["text"] = {"format": {"type": "json_schema", **form(request.output, strict=True)}}
    if stream:
        body["stream"] = True
    return body | settings.options if settings.options else body


def input_items(messages: Iterable[Message], provider: str = "openai") -> Iterator[JSONObject]:
    """A history as items."""
    own = item_key(provider)
    for message in messages:
        if message.role is Role.SYSTEM:
            yield {"role": "developer", "content": message.text}
        elif message.role is Role.USER:
            yield {"role": "user", "content": _content(message.parts)}
        elif message.role is Role.TOOL:
            for result in message.tool_results:
                yield _output(result)
        else:
            yield from _said(message, own)


def _said(message: Message, own: str) -> Iterator[JSONObject]:
    """What the model said, item by item, and what it showed in a message after that."""
    shown: list[Image] = []
    for part in message.parts:
        if type(part) is Text:
            said: JSONObject = {"role": "assistant", "content": part.text}
            if part.extra and PHASE in part.extra:
                said[PHASE] = part.extra[PHASE]
            yield said
        elif type(part) is ToolCall:
            args = part.args_json or "{}"
            yield {
                "type": "function_call",
                "call_id": fitting_id(part.id),
                "name": fitting_name(part.name),
                "arguments": args,
            }
        elif type(part) is Thinking:
            # Thoughts that another vendor's model had say nothing to this one.
            if part.provider_data and own in part.provider_data:
                yield part.provider_data[own]
        elif type(part) is Image:
            shown.append(part)
    if shown:
        yield {"role": "user", "content": _content((Text(_FROM_ABOVE), *shown))}


def _content(parts: Iterable[Part]) -> Any:
    told = [_input(part) for part in parts]
    return told[0]["text"] if len(told) == 1 and told[0]["type"] == "input_text" else told


def _input(part: Part) -> JSONObject:
    match part:
        case Text() | Retry():
            return {"type": "input_text", "text": part.text}
        case Image():
            return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
        case Audio():
            raise refuse(part, "openai", "in the Responses API: use api='chat'")
        case Document():
            return _document(part)
        case Thinking() | ToolCall() | ToolResult():
            raise refuse(part, "openai", "in a user's message")
        case _:
            assert_never(part)


def _document(part: Document) -> JSONObject:
    paper = paper_of(part)
    if paper.text is not None:
        return {"type": "input_text", "text": paper.text}
    if paper.data is None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": paper.name, "file_data": paper.data}


def _output(result: ToolResult) -> JSONObject:
    told: Any = result.text
    if result.images:
        told = [{"type": "input_text", "text": told}, *map(_input, result.images)]
    return {"type": "function_call_output", "call_id": fitting_id(result.call_id), "output": told}


def _put_tools(body: JSONObject, offer: Offer, functions: Functions) -> None:
    if not offer.tools:
        return
    # Unless told otherwise, this API takes any tool for a strict one.
    body["tools"] = [{"type": "function", "strict": False, **functions(tool)} for tool in offer.tools]
    mode = mode_of(offer)
    if mode == "function":
        body["tool_choice"] = {"type": "function", "name": offer.only}
    elif mode == "required":
        body["tool_choice"] = "required"
    if any(tool.sequential for tool in offer.tools):
        body["parallel_tool_calls"] = False
