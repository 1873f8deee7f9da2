"""Around the model call: middleware at the wire, with a guardrail and an interceptor before it.

It prints:

    2 model calls, 2 timed, 4 lines in the log
    asked for at most 100 tokens
    sent: Be brief. | Where is order 17? I live at [address].
    said: Where is order 17? I live at 12 Elm Street.
    It comes on Tuesday.
    streamed: It comes on Tuesday.
    refused: the prompt holds 'password', which is not allowed

The first middleware is the outermost. What it makes of a request is sent and recorded; the conversation stays
as it was said. See `docs/middleware.md`.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from flyball import (
    Agent,
    ChangeRequest,
    ContentFilter,
    Logging,
    MaxTokens,
    RedactPII,
    Request,
    Timing,
    system,
    tool,
)
from flyball.core.errors import GuardrailError
from flyball.testing import ScriptedEngine, tool_call

log: list[str] = []
seconds: list[float] = []


@ChangeRequest
def briefly(request: Request) -> Request:
    """On both sides, so that a streamed run is asked for the same."""
    return replace(request, messages=(system("Be brief."), *request.messages))


@tool
async def track(order: int) -> str:
    """Where an order is."""
    return f"order {order} is on its way"


ANSWERS = (tool_call("track", {"order": 17}), "It comes on Tuesday.")

agent = Agent(
    ScriptedEngine(*ANSWERS, *ANSWERS, chunk=8),
    tools=[track],
    features=[
        Logging(log.append),
        Timing(seconds.append),
        MaxTokens(100),
        briefly,
        ContentFilter("password"),
        RedactPII(r"\d+ \w+ Street", "[address]"),
    ],
)

PROMPT = "Where is order 17? I live at 12 Elm Street."


async def main() -> None:
    result = await agent.run(PROMPT)
    engine = agent.config.model
    assert isinstance(engine, ScriptedEngine)
    print(f"{len(engine.calls)} model calls, {len(seconds)} timed, {len(log)} lines in the log")
    first = engine.calls[0]
    print(f"asked for at most {first.settings.max_tokens} tokens")
    print("sent:", " | ".join([message.text for message in first.messages]))
    print("said:", result.messages[0].text)
    print(result.output)
    async with agent.run_stream(PROMPT) as stream:
        print("streamed:", "".join([text async for text in stream.text()]))
    try:
        await agent.run("Tell me the password.")
    except GuardrailError as error:
        print("refused:", error)


if __name__ == "__main__":
    asyncio.run(main())
