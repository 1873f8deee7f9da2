"""A typed agent with tools: it looks things up, and answers with a `Quote`, validated.

It prints:

    Quote(item='oolong', grams=250, pence=2000)
    after 3 model calls; the model was told: there is no 'Oolong'; there are assam, oolong

The model is scripted, so that the example runs anywhere. A real one is named: `Agent("openai:gpt-5", ...)`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import BaseModel, Field

from flyball import Agent, ModelRetry, RunContext
from flyball.testing import ScriptedEngine, tool_call


@dataclass
class Shop:
    """What the tools work with. It is passed to the run, and never recorded."""

    pence_per_100_grams: dict[str, int]


class Quote(BaseModel):
    """What a customer would pay."""

    item: str
    grams: int = Field(gt=0)
    pence: int


agent = Agent(
    ScriptedEngine(
        tool_call("price", {"item": "Oolong"}),  # the shop spells it otherwise: the tool asks for another try
        tool_call("price", {"item": "oolong"}),
        tool_call("final_result", {"item": "oolong", "grams": 250, "pence": 2000}),
    ),
    output=Quote,
    deps_type=Shop,
    instructions="Quote prices for a tea shop. Look prices up, do not guess.",
)


@agent.tool
async def price(ctx: RunContext[Shop], item: str) -> int:
    """The price of a tea, in pence for 100 grams."""
    prices = ctx.deps.pence_per_100_grams
    if item not in prices:
        raise ModelRetry(f"there is no {item!r}; there are {', '.join(prices)}")
    return prices[item]


@agent.output_validator
def adds_up(ctx: RunContext[Shop], quote: Quote) -> Quote:
    """The model does not get to make up prices."""
    right = ctx.deps.pence_per_100_grams[quote.item] * quote.grams // 100
    if quote.pence != right:
        raise ModelRetry(f"{quote.grams} g of {quote.item} are {right} pence, not {quote.pence}")
    return quote


async def main() -> None:
    result = await agent.run("250 grams of Oolong, please.", deps=Shop({"assam": 450, "oolong": 800}))
    print(repr(result.output))
    answers = [answer for message in result.messages for answer in message.tool_results]
    told = [answer.text for answer in answers if answer.status == "retry"]
    print(f"after {result.usage.requests} model calls; the model was told: {told[0]}")


if __name__ == "__main__":
    asyncio.run(main())
