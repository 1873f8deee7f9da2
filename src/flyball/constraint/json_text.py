"""Getting JSON out of a model's text: what models put around it, and what is broken in it.

Two steps, each only where the one before did not do: cut out what is no JSON (thinking, code fences, prose
around an object), then repair what is left (cut ends, single quotes, trailing commas, unquoted keys).
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[ \t]*([\w+-]*)[ \t]*\r?\n(.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
_START = re.compile(r"[{\[]")
_MOST_STARTS = 64


def extract_json(text: str) -> str:
    """The part of a text that looks like its JSON; the text itself where nothing does.

    Text that is JSON as it stands is not touched, whatever its strings hold. Thinking is cut off also where
    only its end is there (some chat templates write the beginning). Of several fences, one that says `json`
    counts, else the last; of several objects in prose, the longest that is whole.
    """
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and _is_json(stripped):
        return stripped
    stripped = _unfenced(_without_thinking(stripped))
    if stripped[:1] in ("{", "[") and _is_json(stripped):
        return stripped
    whole = _longest_value(stripped)
    if whole is not None:
        return whole
    start = _START.search(stripped)
    return stripped if start is None else stripped[start.start() :]


def repair_json(text: str) -> str | None:
    """The text as valid JSON; None if it cannot be made so."""
    found = extract_json(text)
    if not found:
        return None
    if _is_json(found):
        return found
    from json_repair import repair_json as repair

    try:
        mended = repair(found, skip_json_loads=True, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None
    if mended in ("", '""') or not _is_json(mended):
        return None
    return mended


def mended_json(text: str) -> str | None:
    """The text as JSON in one form, whatever it took; None where it cannot be made so."""
    try:
        mended = repair_json(text)
        return None if mended is None else str(msgspec.json.encode(decoded(mended)), "utf-8")
    except (ValueError, RecursionError):
        return None


def decoded(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_thinking(text: str) -> str:
    if "think" not in text.lower():
        return text
    return _THOUGHT.sub("", _THINKING.sub("", text)).strip()


def _unfenced(text: str) -> str:
    fences = [(match[1].lower(), match[2].strip()) for match in _FENCE.finditer(text)]
    if not fences:
        return text
    named = [body for language, body in fences if language in ("json", "jsonc", "json5")]
    return named[0] if named else fences[-1][1]


def _longest_value(text: str) -> str | None:
    """The longest object or array that stands whole in the text."""
    decoder = json.JSONDecoder()
    longest: str | None = None
    end_of_last = tries = 0
    for start in _START.finditer(text):
        if start.start() < end_of_last:
            continue
        tries += 1
        if tries > _MOST_STARTS:
            break
        try:
            _, end_of_last = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            end_of_last = _closing(text, start.start())  # what is inside of something broken is no answer
            continue
        found = text[start.start() : end_of_last]
        if longest is None or len(found) > len(longest):
            longest = found
    return longest


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed, strings not looked into; the end of the text if nowhere."""
    depth, quoted, escaped = 0, False, False
    for at in range(start, len(text)):
        char = text[at]
        if quoted:
            quoted = char != '"' or escaped
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True
