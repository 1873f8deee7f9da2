"""The agents of `examples/` come to the same end wherever they are driven."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flyball import LocalRuntime, MemoryJournal, SQLiteJournal
from flyball.testing import ROUGH, SplitDriver
from tests.orchestrate.example_agents import EXAMPLE_RUNS, FOLDER, ExampleRun, example
from tests.orchestrate.models import Script
from tests.orchestrate.where import Where


def test_no_example_is_left_out() -> None:
    flows = {"flows", "observing", "patterns", "rag"}  # no agents of their own: the next test runs the first
    servers = {"mcp_tools"}  # its tools are a program's, which tests/tool/mcp has its own of
    assert {run.name for run in EXAMPLE_RUNS} | flows | servers == {file.stem for file in FOLDER.glob("*.py")}


async def test_the_flow_of_the_examples(where: Where) -> None:
    module = example("flows")
    with ExitStack() as stack:
        for agent in (module.researcher, module.critic, module.editor):
            stack.enter_context(agent.override(model=Script(*agent.config.model.answers)))
        result = await module.report.run("Why?", **where.options({"loop_id": f"report-{where.kind}"}))
    assert result.output == "RIVERS RISE (9 words)"
    assert result.usage.requests == 3


@pytest.mark.parametrize("run", EXAMPLE_RUNS, ids=repr)
async def test_in_process_on_a_runtime_and_split_apart(run: ExampleRun, tmp_path: Path) -> None:
    agent, hotel = run.agent(), tmp_path / "hotel"
    memory = MemoryJournal()
    options: dict[str, Any] = {"loop_id": "one", "deps": run.deps_in(hotel)}
    here = await run.ended(lambda: agent.run(run.prompt, journal=memory, **options), memory)
    assert here[0] == run.output
    async with SQLiteJournal(tmp_path / "runs.db") as journal, LocalRuntime(journal) as runtime:
        options["deps"] = run.deps_in(hotel)
        again = await run.ended(lambda: agent.run(run.prompt, runtime=runtime, **options), journal, runtime)
        assert again == here
    driver = SplitDriver(deps=run.deps_in(hotel))
    where = Where("calm", driver.journal, driver)
    assert await run.ended(lambda: where.run(agent, run.prompt, "one"), driver.journal) == here


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("run", EXAMPLE_RUNS, ids=repr)
async def test_where_everything_goes_wrong(run: ExampleRun, seed: int, tmp_path: Path) -> None:
    """Tools that remember may have run twice and say so; what comes of it is the same all the same."""
    driver = SplitDriver(seed, ROUGH, deps=run.deps_in(tmp_path / "hotel"))
    where = Where("rough", driver.journal, driver)
    agent = run.agent()
    split = await run.ended(lambda: where.run(agent, run.prompt, "one"), driver.journal)
    assert split[0] == run.output
