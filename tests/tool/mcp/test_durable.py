"""Runs with a server's tools are recorded, replayed and gone on with as any others."""

from __future__ import annotations

from pathlib import Path

from flyball import Agent
from flyball.core.events import Started, ToolReturned
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing import ScriptedEngine, tool_call
from tests.tool.mcp.conftest import odd


def agent(*answers: object, **options: object) -> Agent[str]:
    return Agent(ScriptedEngine(*answers), **options)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_a_run_is_gone_on_with_in_another_session_and_replayed_without_one(tmp_path: Path) -> None:
    secret = {"TOKEN": "s3cret-token"}
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        async with odd(env=secret) as tools:
            caller = agent(tool_call("go", {}), "Never said.", tools=[tools])
            async with caller.iter("Go.", journal=journal, loop_id="r1") as run:
                async for _ in run:
                    if any(isinstance(event, ToolReturned) for event in await journal.read("r1")):
                        break
        async with odd(env=secret) as tools:
            again = agent(tool_call("look", {}), "Done.", tools=[tools])
            result = await again.resume("r1", journal=journal)
            assert result.output == "Done."
        events = await journal.read("r1")
        returned = [event for event in events if isinstance(event, ToolReturned)]
        assert [event.result.name for event in returned] == ["go", "look"]
        assert all(event.result.error is None for event in returned)
        started = next(event for event in events if isinstance(event, Started))
        assert list(started.spec.tools) == ["go", "look"]
        assert "s3cret" not in str(events)
        # The server is closed, and nobody calls it.
        replayed = await again.replay("r1", journal=journal)
        assert replayed.output == "Done."


async def test_a_tool_that_needs_approval_waits_for_it() -> None:
    async with odd(approval=["go"]) as tools:
        asked: list[str] = []

        def approve(_: object, call: object) -> bool:
            asked.append(getattr(call, "name", ""))
            return False

        caller = agent(tool_call("go", {}), tool_call("look", {}), "Done.", tools=[tools], approval=approve)
        result = await caller.run("Go.")
        assert asked == ["go"]
        statuses = [one.status.value for message in result.messages for one in message.tool_results]
        assert statuses == ["denied", "return"]
