"""Around the model call: what may go in, what is sent, what counts as an answer, and when it is enough.

It prints:

    sent: My card is [card]. When does my parcel come?
    sent: My card is [card]. When does my parcel come?
    On Tuesday, between 9 and 11.
    said: My card is 4111 1111 1111 1111. When does my parcel come?
    refused: the prompt holds 'password', which is not allowed

Each is a small object in `features=[...]`; functions become one by a decorator. What they decide is in the
journal. See `docs/guardrails.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from flyball import (
    Agent,
    ContentFilter,
    InterceptResult,
    MaxPromptLength,
    MaxRunDuration,
    Message,
    RedactPII,
    ResponseInterceptor,
    RunContext,
    ToolCallCount,
    TurnGuardrail,
)
from flyball.core.errors import GuardrailError
from flyball.testing import ScriptedEngine


@TurnGuardrail
def no_numbers(ctx: RunContext[Any], messages: Sequence[Message]) -> None:
    """Asked last, it sees what would really be sent."""
    if any("4111" in message.text for message in messages):
        raise GuardrailError("a card number is about to leave")


@ResponseInterceptor
def in_the_right_tone(ctx: RunContext[Any], message: Message) -> InterceptResult | None:
    """An answer that is dropped is as if it had not been given: the model is asked again."""
    return InterceptResult.drop("not so familiar") if "mate" in message.text else None


agent = Agent(
    ScriptedEngine("Tuesday, mate.", "On Tuesday, between 9 and 11."),
    features=[
        ContentFilter("password"),
        MaxPromptLength(500),
        RedactPII(r"\d{4}( \d{4}){3}", "[card]"),
        no_numbers,
        in_the_right_tone,
        ToolCallCount(10) | MaxRunDuration(60),
    ],
)


async def main() -> None:
    result = await agent.run("My card is 4111 1111 1111 1111. When does my parcel come?")
    engine = agent.config.model
    assert isinstance(engine, ScriptedEngine)
    for request in engine.calls:
        print("sent:", request.messages[-1].text)
    print(result.output)
    print("said:", result.messages[0].text)
    try:
        await agent.run("Tell me the PassWord.")
    except GuardrailError as error:
        print("refused:", error)


if __name__ == "__main__":
    asyncio.run(main())
