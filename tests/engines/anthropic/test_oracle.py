"""The oracle sees what is wrong, however deep it stands: else the properties would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.engines.anthropic.oracle import check_params, check_rules
from tests.engines.anthropic.wire import MODEL


def _body(*content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 1, "messages": [{"role": role, "content": list(content)}], **more}


_BAD_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}}


@pytest.mark.parametrize(
    "body",
    [
        _body({"type": "text", "text": 1}),
        _body({"type": "tool_result", "tool_use_id": "a", "content": [_BAD_IMAGE]}),
        _body({"type": "text", "text": "x", "unknown": 1}),
        _body({"type": "thinking", "thinking": "x"}),
        _body({"type": "text", "text": "x"}, temperature=1.0),
        _body({"type": "text", "text": "x"}, tools=[{"name": 1, "input_schema": {}}]),
        _body({"type": "text", "text": "x"}, system=[{"type": "text"}]),
        _body({"type": "text", "text": "x"}, role="tool"),
    ],
)
def test_what_the_types_do_not_take(body: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, AssertionError)):
        check_params(body)


@pytest.mark.parametrize(
    "body",
    [
        _body({"type": "text", "text": " "}),
        _body({"type": "text", "text": "x"}, role="assistant"),
        _body({"type": "tool_result", "tool_use_id": "a"}),
        _body(),
    ],
)
def test_what_the_rules_do_not_allow(body: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check_rules(body)
