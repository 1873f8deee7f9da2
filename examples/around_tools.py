"""What can be put around tools: a basket that remembers, a tool that comes later, results that are looked at.

It prints:

    turn 1: put
    turn 2: put, pay (2 in the basket)
    turn 3: put, pay (1 in the basket)
    turn 4: put, pay (1 in the basket)
    put: 1
    put: 2
    pay: That is more than the budget of 10: put something back.
    put: 1
    pay: paid 8
    {'basket': {'milk': 8}}
    another day: {'basket': {'milk': 8, 'salt': 1}}

Each call of the basket gets an object of its own, in the state that the journal has: in this process, on a
worker, after a crash. See `docs/tools.md` and `docs/stateful_tools.md`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from flyball import (
    Agent,
    DefaultToolTimeout,
    Message,
    ModelRetry,
    RunContext,
    ToolDefinition,
    ToolOutputTruncation,
    ToolResult,
    ToolResultValidator,
    Toolset,
    stateful,
    tool,
)
from flyball.core.events import TurnPrepared
from flyball.testing import ScriptedEngine, tool_call

PRICES = {"tea": 4, "milk": 8, "salt": 1}


class Basket:
    """What was put into the basket, with its price."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def export_state(self) -> dict[str, int]:
        """What there is to remember."""
        return self.items

    def restore_state(self, state: dict[str, int]) -> None:
        """Remember it again."""
        self.items = state

    @tool
    async def put(self, item: str, *, back: bool = False) -> int:
        """Put something into the basket, or back; how many things are in it then."""
        if back:
            self.items.pop(item, None)
        else:
            self.items[item] = PRICES[item]
        return len(self.items)


def with_a_full_basket(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    """Paying is offered when there is something to pay for."""
    items = ctx.tool_state_by_name("basket", {})
    return replace(definition, description=f"{len(items)} in the basket") if items else None


@tool(prepare=with_a_full_basket, retries=2)
async def pay(ctx: RunContext[Any]) -> int:
    """Pay for what is in the basket."""
    return sum(ctx.tool_state_by_name("basket", {}).values())


@ToolResultValidator
def within_the_budget(ctx: RunContext[Any], result: Any) -> Any:
    """Refuses to pay too much, and says what was paid."""
    if ctx.tool_name != "pay":
        return None
    if result > 10:
        raise ModelRetry("That is more than the budget of 10: put something back.")
    return f"paid {result}"


shop = Toolset("shop", [pay], instructions="Stay within the budget.", features=[within_the_budget])
agent = Agent(
    ScriptedEngine(
        [tool_call("put", {"item": "tea"}), tool_call("put", {"item": "milk"})],
        [tool_call("pay"), tool_call("put", {"item": "tea", "back": True})],
        tool_call("pay"),
        "Milk it is.",
    ),
    tools=[stateful(Basket), shop],
    features=[ToolOutputTruncation(max_tokens=1000), DefaultToolTimeout(20)],
)


def answers(messages: tuple[Message, ...]) -> list[ToolResult]:
    """The answers to all calls."""
    return [answer for message in messages for answer in message.tool_results]


async def main() -> None:
    result = await agent.run("Tea and milk, please.")
    for event in await result.events():
        if isinstance(event, TurnPrepared):
            told = {definition.name: f" ({definition.description})" for definition in event.definitions}
            print(
                f"turn {event.turn}:", ", ".join(f"{name}{told.get(name, '')}" for name in event.tools or ())
            )
    for answer in answers(result.messages):
        print(f"{answer.name}: {answer.text}")
    print(result.tool_state)
    tomorrow = agent.clone(model=ScriptedEngine(tool_call("put", {"item": "salt"}), "Salted."))
    print("another day:", (await tomorrow.run("And salt.", tool_state=result.tool_state)).tool_state)


if __name__ == "__main__":
    asyncio.run(main())
