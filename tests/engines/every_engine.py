"""Each engine over HTTP, all asking one server on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from flyball.core.messages import user
from flyball.engines.anthropic import AnthropicEngine
from flyball.engines.google import GoogleEngine
from flyball.engines.openai import OpenAIEngine
from flyball.inference.request import Request, Result
from flyball.inference.stream import collect

KEY = "sk-0123456789abcdef"
Vendors: TypeAlias = OpenAIEngine | AnthropicEngine | GoogleEngine
HELLO = Request((user("Hello"),))

ENGINES: Mapping[str, Callable[[str], Vendors]] = {
    "chat": lambda url: OpenAIEngine("m", api="chat", base_url=url, api_key=KEY),
    "compatible": lambda url: OpenAIEngine("m", server="openai-compatible", base_url=url, api_key=KEY),
    "responses": lambda url: OpenAIEngine("gpt-5", base_url=url, api_key=KEY),
    "anthropic": lambda url: AnthropicEngine("claude-sonnet-4-5", base_url=url, api_key=KEY),
    "google": lambda url: GoogleEngine("gemini-2.5-flash", base_url=url, api_key=KEY),
}


async def whole(engine: Vendors) -> Result:
    return await engine.infer(HELLO)


async def streamed(engine: Vendors) -> Result:
    return await collect(engine.stream(HELLO))
