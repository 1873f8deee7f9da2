"""What runs cost, what happens where a price is not known, and a budget that holds all the same.

It prints:

    Owls fly silently.
    this run: 0.007 USD, by {'large': '0.006', 'small': '0.001'}
    in another process, from the journal: 0.007 USD
    the agent so far: 0.007 USD
    too dear: the run has cost 0.012 USD, and 0.01 USD are allowed
    no price: unknown (no price or no usage of homemade)
    tokens bind all the same: the limit total_tokens_limit is 2500, and this would be 3000
    the agents so far: unknown (at least 0.019 USD; no price or no usage of homemade)

Prices are per token, and exact. Without a table of one's own, `CostTracker()` takes the public prices of
providers (`pip install 'flyball[cost]'`). See `docs/cost.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    CostTracker,
    FlyballError,
    Limits,
    MaxCost,
    MemoryJournal,
    Message,
    ModelPricing,
    Role,
    Text,
    ToolCall,
    Usage,
    UsageLimits,
    tool,
)
from flyball.testing import ScriptedEngine

PRICES = {
    "small": ModelPricing.per_million(input=0.5, output=1),
    "large": ModelPricing.per_million(input=5, output=10, cached_input=1),
}


@tool
async def look_up(page: int) -> str:
    """Read a page of the book of owls."""
    return f"page {page}: an owl's feathers are soft"


def reads(page: int, model: str) -> Message:
    """An answer as a model gives it: it wants to read a page, and says what it used."""
    call = ToolCall(f"call-{page}", "look_up", f'{{"page": {page}}}')
    return Message(Role.ASSISTANT, (call,), usage=Usage(1000, 500, cache_read_tokens=1000), model=model)


def says(text: str, model: str) -> Message:
    return Message(Role.ASSISTANT, (Text(text),), usage=Usage(1000, 500), model=model)


tracker = CostTracker(PRICES)
agent = Agent(
    ScriptedEngine(reads(1, "large"), says("Owls fly silently.", "small")),
    tools=[look_up],
    features=[tracker],
)


async def main() -> None:
    journal = MemoryJournal()
    result = await agent.run("How do owls fly?", journal=journal, loop_id="owls")
    assert result.cost is not None
    print(result.output)
    by_model = {model: f"{cost:.3f}" for model, cost in result.cost.breakdown.items()}
    print(f"this run: {result.cost}, by {by_model}")

    # The cost follows from the journal: who has that and prices needs nothing else.
    reader = agent.clone(features=[CostTracker(PRICES)])
    print(f"in another process, from the journal: {(await reader.replay('owls', journal)).cost}")
    print(f"the agent so far: {tracker.cost}")

    endless = [reads(page, "large") for page in range(9)]
    thrifty = agent.clone(model=ScriptedEngine(*endless), features=[tracker, MaxCost("0.01", tracker)])
    try:
        await thrifty.run("Read the whole book.")
    except FlyballError as error:
        print(f"too dear: {error.details['reason']}")

    homemade = [reads(page, "homemade") for page in range(9)]
    limits = Limits(usage=UsageLimits(total_tokens_limit=2500))
    unpriced = agent.clone(model=ScriptedEngine(*homemade), limits=limits)
    try:
        await unpriced.run("Read the whole book.")
    except FlyballError as error:
        print(f"no price: {error.partial.cost}")
        print(f"tokens bind all the same: {error}")
    print(f"the agents so far: {tracker.cost}")


if __name__ == "__main__":
    asyncio.run(main())
