"""Getting JSON out of a model's text: what models put around it, and what is broken in it.

Two steps, each only where the one before did not do: cut out what is no JSON (thinking, code fences, prose
around an object), then repair what is left (cut ends, single quotes, trailing commas, unquoted keys).
"""

from __future__ import annotations

import re

import msgspec

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```(?:json|JSON)?\s*\n(.*?)(?:\n\s*```|\Z)", re.DOTALL)


def extract_json(text: str) -> str:
    """The part of a text that looks like its JSON; the text itself where nothing does."""
    if "<think" in text.lower():
        text = _THINKING.sub("", text)
    if "```" in text and (fenced := _FENCE.search(text)) is not None:
        text = fenced.group(1)
    text = text.strip()
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    if not starts or text[:1] in ("{", "["):
        return text
    return text[min(starts) :]


def repair_json(text: str) -> str | None:
    """The text as valid JSON; None if it cannot be made so."""
    found = extract_json(text)
    if not found:
        return None
    if _is_json(found):
        return found
    from json_repair import repair_json as repair

    mended = repair(found, skip_json_loads=True)
    if mended in ("", '""') or not _is_json(mended):
        return None
    return mended


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True
