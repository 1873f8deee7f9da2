"""The forms in which open models write tool calls, read.

<tool_call>{"name": "f", "arguments": {…}}</tool_call>                 Hermes, Qwen
<tool_call><function=f><parameter=x>1</parameter></function></tool_call>   Qwen-Coder
<function=f>{…}</function>                                              Llama 3.1, Functionary
[TOOL_CALLS][{"name": "f", "arguments": {…}}]   [TOOL_CALLS]f{…}        Mistral
<|python_tag|>{"name": "f", "parameters": {…}}                          Llama 3
    DeepSeek's: marks in full-width bars around `f` and its JSON
{"name": "f", "arguments": {…}}                                         nothing but JSON, in a fence or not
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from flyball.core.encodable import as_text

MARKS = (
    "<tool_call>",
    "<function=",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
)
"""With what a call begins, wherever in a text it stands."""

Found: TypeAlias = tuple[str, str]
"""The name of a tool, and the arguments as JSON text."""

_TAG = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>\s*(.*?)\s*(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_NAMED = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")
_DEEPSEEK = re.compile(
    r"<\uff5ctool\u2581call\u2581begin\uff5c>(?:function)?(?:<\uff5ctool\u2581sep\uff5c>)?([\w.-]+)"
    r"(?:<\uff5ctool\u2581sep\uff5c>)?\s*(?:```json\s*)?(\{.*?\})\s*(?:```)?\s*(?=<\uff5ctool|\Z)",
    re.DOTALL,
)
_FENCE = re.compile(r"\A\s*(?:```(?:json)?\s*)?(.*?)\s*(?:```)?\s*\Z", re.DOTALL)
"""A fence, or half of one: models forget where they began it."""


def calls_in(text: str, tools: Mapping[str, Mapping[str, Any]]) -> list[Found] | None:
    """The calls that a text is, all of it; None where any of it is anything else.

    Args:
        text: from the first mark on, or a whole text that begins as JSON.
        tools: the parameters' schemas of the tools on offer, by name.
    """
    try:
        found = list(_read(text.strip(), tools))
    except (msgspec.DecodeError, _NoCallError, UnicodeError, RecursionError):
        return None
    return found or None


class _NoCallError(Exception):
    pass


def _read(text: str, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Found]:
    if text.startswith("<tool_call>"):
        yield from _each(_TAG, text, lambda found: _tagged(found.group(1), tools))
    elif text.startswith("<function="):
        yield from _each(_FUNCTION, text, lambda found: [_function(found, tools)])
    elif text.startswith("[TOOL_CALLS]"):
        yield from _mistral(text, tools)
    elif text.startswith("<|python_tag|>"):
        rest = text.removeprefix("<|python_tag|>").removesuffix("<|eom_id|>").removesuffix("<|eot_id|>")
        yield from _objects(rest, tools)
    elif text.startswith("<\uff5c"):
        for found in _DEEPSEEK.finditer(text):
            yield _checked(found.group(1), msgspec.json.decode(found.group(2)), tools)
    else:
        fenced = _FENCE.match(text)
        yield from _objects(fenced.group(1) if fenced else text, tools)


def _each(
    pattern: re.Pattern[str], text: str, read: Callable[[re.Match[str]], Iterable[Found]]
) -> Iterator[Found]:
    """What all matches are; there may be nothing but space between them."""
    end = 0
    for found in pattern.finditer(text):
        if text[end : found.start()].strip():
            raise _NoCallError
        yield from read(found)
        end = found.end()
    if text[end:].strip():
        raise _NoCallError


def _tagged(inner: str, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Found]:
    if inner.startswith("<function="):
        return _each(_FUNCTION, inner, lambda found: [_function(found, tools)])
    return _objects(inner, tools)


def _function(found: re.Match[str], tools: Mapping[str, Mapping[str, Any]]) -> Found:
    name, inner = found.group(1), found.group(2)
    if not inner.startswith("<parameter="):
        return _checked(name, msgspec.json.decode(inner or "{}"), tools)
    properties: Mapping[str, Any] = tools.get(name, {}).get("properties") or {}
    return _checked(
        name,
        {key: _value(text, properties.get(key)) for key, text in _PARAMETER.findall(inner)},
        tools,
    )


def _value(text: str, schema: Any) -> Any:
    """A parameter that is written without quotes: text where its schema says so, else JSON if it is any."""
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string":
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _mistral(text: str, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Found]:
    for piece in text.split("[TOOL_CALLS]")[1:]:
        named = _NAMED.match(piece)
        if named is None:
            yield from _objects(piece.removesuffix("</s>"), tools)
        else:
            args = msgspec.json.decode(piece[named.end() :].removesuffix("</s>"))
            yield _checked(named.group(1), args, tools)


def _objects(text: str, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Found]:
    for piece in _documents(text):
        given = _decoded(piece)
        for one in cast("list[Any]", given) if isinstance(given, list) else [given]:
            yield _object(one, tools)


def _decoded(text: str) -> Any:
    """A JSON value, whose last brackets small models forget. What stops anywhere else was cut off."""
    if text.endswith("}"):
        for ending in ("", "}", "}]"):
            try:
                return msgspec.json.decode(text + ending)
            except msgspec.DecodeError:
                continue
    return msgspec.json.decode(text)


def _documents(text: str) -> list[str]:
    """A text's JSON documents, which `;` or a line's end may part (Llama 3)."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [piece for piece in re.split(r"(?<=\})\s*[;\n]\s*(?=\{)", text.strip()) if piece.strip()]
    return [text]


def _object(given: Any, tools: Mapping[str, Mapping[str, Any]]) -> Found:
    if not isinstance(given, dict):
        raise _NoCallError
    call = cast("dict[str, Any]", given)
    inner = call.get("function")
    if isinstance(inner, dict):
        call = cast("dict[str, Any]", inner)
    args: Any = next((call[key] for key in ("arguments", "parameters", "args") if key in call), None)
    if isinstance(args, str):
        args = msgspec.json.decode(args or "{}")
    return _checked(call.get("name") or (inner if isinstance(inner, str) else None), args, tools)


def _checked(name: Any, args: Any, tools: Mapping[str, Mapping[str, Any]]) -> Found:
    if name not in tools or not isinstance(args, dict):
        raise _NoCallError
    return name, as_text(cast("dict[str, Any]", args))
