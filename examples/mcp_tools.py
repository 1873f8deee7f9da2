"""Tools of an MCP server: a program that is started, asked what it offers, and started again when it dies.

It prints:

    the shop offers look_up, order
    order needs approval: True
    looked up: 3
    ordered: {'tea': 5}
    after a crash, nothing is remembered: 3

The server is real, and written with the protocol's own SDK; any other will do, in any language. The model is
a script, so that this runs without one. See `docs/mcp.md`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from flyball import Agent, MCPServer, RunContext, ToolCall
from flyball.testing import ScriptedEngine, tool_call

SHOP = '''
import os
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

shop = MCPServer("shop")
stock = {"tea": 3}

@shop.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(item: str) -> int:
    """How many of an item there are."""
    return stock.get(item, 0)

@shop.tool()
def order(item: str, count: int) -> dict[str, int]:
    """Order some more of an item."""
    stock[item] = stock.get(item, 0) + count
    return {item: stock[item]}

@shop.tool()
def number_of_the_process() -> int:
    return os.getpid()

shop.run()
'''


def approve(ctx: RunContext[Any], call: ToolCall) -> bool:
    return call.arguments["count"] < 10


async def called(tools: Any, name: str, **arguments: Any) -> Any:
    """What a tool gives to an agent whose model calls it."""
    engine = ScriptedEngine(tool_call(name, arguments), "Done.")
    result = await Agent(engine, tools=[tools], approval=approve).run("Go on.")
    return result.messages[2].tool_results[0].content


async def main(program: Path) -> None:
    async with MCPServer.stdio(sys.executable, program, name="shop", approval=["order"]) as tools:
        offered = [name for name in tools.names if name != "number_of_the_process"]
        print(f"the shop offers {', '.join(offered)}")
        order = next(tool for tool in tools if tool.spec.definition.name == "order")
        print(f"order needs approval: {order.spec.approval}")
        print(f"looked up: {await called(tools, 'look_up', item='tea')}")
        print(f"ordered: {await called(tools, 'order', item='tea', count=2)}")
        os.kill(await called(tools, "number_of_the_process"), signal.SIGKILL)
        again = await called(tools, "look_up", item="tea")
        print(f"after a crash, nothing is remembered: {again}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder, "shop.py")
        shop.write_text(SHOP)
        asyncio.run(main(shop))
