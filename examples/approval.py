"""Approval by a person, through a signal: the loop waits in its journal until somebody decides.

It prints (and, at a terminal, asks):

    ann is asked about refund {"order":17,"pounds":40}
    ann is asked about refund {"order":18,"pounds":4000}
    I have refunded order 17. Order 18 was refused: ask a manager.
    17: refunded 40 pounds
    18: The call was not allowed: more than 100 pounds, ask a manager

Whoever approves needs nothing but the journal. It may be another process, days later: the loop may be stopped
meanwhile, and whoever resumes it finds the decision. See `docs/control.md`.
"""

from __future__ import annotations

import asyncio
import sys

from flyball import Agent, Journal, MemoryJournal, Signal, SignalType, ToolCall, send_signal, tool
from flyball.orchestrate.recorded import load
from flyball.testing import ScriptedEngine, tool_call


@tool(approval=True, safety="at_most_once")
async def refund(order: int, pounds: int) -> str:
    """Pay a customer's money back."""
    return f"refunded {pounds} pounds"


agent = Agent(
    ScriptedEngine(
        [
            tool_call("refund", {"order": 17, "pounds": 40}),
            tool_call("refund", {"order": 18, "pounds": 4000}),
        ],
        "I have refunded order 17. Order 18 was refused: ask a manager.",
    ),
    tools=[refund],
)


async def decide(call: ToolCall) -> str:
    """Why not, or an empty text."""
    print("ann is asked about", call.name, call.args_json)
    if sys.stdin.isatty():
        return await asyncio.to_thread(input, "why not? (nothing: go ahead) ")
    return "more than 100 pounds, ask a manager" if call.arguments["pounds"] > 100 else ""


async def person(journal: Journal, loop_id: str) -> None:
    """Somebody at another desk, who sees the journal and nothing else."""
    seen = 0
    while await journal.wait(loop_id, seen):
        events, state = await load(journal, loop_id)
        seen = len(events)
        if state.at == "done":
            return
        for call in [state.calls[index] for index in state.awaiting]:
            reason = await decide(call)
            kind = SignalType.REJECT if reason else SignalType.APPROVE
            # With an id of its own a signal may be sent twice, and counts once.
            signal = Signal(kind, id=f"{loop_id}/{call.id}", by="ann", text=reason, call_id=call.id)
            await send_signal(journal, loop_id, signal)


async def main() -> None:
    journal = MemoryJournal()
    desk = asyncio.create_task(person(journal, "case-1"))
    result = await agent.run("Refund orders 17 and 18.", journal=journal, loop_id="case-1")
    await desk
    print(result.output)
    calls, answers = result.messages[1].tool_calls, result.messages[2].tool_results
    for call, answer in zip(calls, answers, strict=True):
        print(f"{call.arguments['order']}: {answer.text}")


if __name__ == "__main__":
    asyncio.run(main())
