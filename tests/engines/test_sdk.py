"""The judge of what we send does judge."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import ValidationError

from tests.engines.sdk import accepted


def test_what_is_right_is_taken() -> None:
    accepted(ChatCompletionMessageParam, {"role": "user", "content": [{"type": "text", "text": "hi"}]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user"},
        {"role": "user", "content": [{"type": "text", "txt": "hi"}]},
        {"role": "user", "content": [{"type": "text", "text": "hi", "more": 1}]},
        {"role": "user", "content": "hi", "colour": "red"},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]},
    ],
)
def test_what_is_wrong_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        accepted(ChatCompletionMessageParam, wrong)
