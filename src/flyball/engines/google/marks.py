"""What Gemini wants back with a part: kept with the part under one key, which no other vendor has.

    Text.extra, Image.extra, Audio.extra      {"google": {"thoughtSignature": …}}
    ToolCall.provider_data                    {"google": {"id": …, "thoughtSignature": …}}
    Thinking.provider_data                    {"google": {"thought": true}}; it has a place for its signature
    Thinking.provider_data, text empty        {"google": {"thought": false}}: a signature that came alone
    Thinking.provider_data, text empty        {"google": {"part": {…}}}: a part that we have no word for

What came alone is a `Thinking`, not an empty text, because other vendors pass over thoughts that are not
theirs, and refuse texts that are empty.
"""

from __future__ import annotations

from typing import Any, cast

KEY = "google"
SIGNATURE = "thoughtSignature"


def mark(**told: Any) -> dict[str, Any] | None:
    """What is to be kept with a part; None where there is nothing."""
    kept = {name: value for name, value in told.items() if value is not None}
    return {KEY: kept} if kept else None


def marked(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """What Gemini left with a part; None where it is not Gemini's."""
    found = data.get(KEY) if data else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
