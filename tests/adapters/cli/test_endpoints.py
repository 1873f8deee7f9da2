"""`--endpoint`: what it says, whom it is for, and who shares it."""

from __future__ import annotations

import asyncio

import pytest

from flyball import Agent, MaxTokens, Timing
from flyball.adapters.cli.endpoints import read_limit, within_limits
from flyball.core.errors import UserError
from flyball.core.messages import user
from flyball.inference.limiting import LimitedEngine
from flyball.inference.request import Request
from flyball.inference.window import Limit
from flyball.testing import ScriptedEngine
from tests.adapters.cli.conftest import Flyball

AGENTS = "tests.adapters.cli.agents"


@pytest.mark.parametrize(
    ("said", "name", "limit"),
    [
        ("openai:gpt-5=rpm:60,concurrent:4", "openai:gpt-5", Limit(60, 4)),
        ("local=concurrent:1", "local", Limit(max_concurrent=1)),
        ("http://localhost:8000/v1#m=rpm:7", "http://localhost:8000/v1#m", Limit(7)),
        ("a=b=concurrent:2, rpm:3", "a=b", Limit(3, 2)),
        ("a=tpm:9000", "a", Limit(tokens_per_minute=9000)),
    ],
)
def test_a_limit_is_read(said: str, name: str, limit: Limit) -> None:
    assert read_limit(said) == (name, limit)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "m",
        "m=",
        "=rpm:1",
        "m=rpm",
        "m=rpm:",
        "m=rpm:0",
        "m=rpm:-1",
        "m=rpm:1.5",
        "m=tokens:4",
        "m=rpm:1,",
    ],
)
def test_what_cannot_be_read_says_how_to_write_it(said: str) -> None:
    with pytest.raises(UserError, match="write it like --endpoint openai:gpt-5=rpm:60,concurrent:4"):
        read_limit(said)


def limit_of(agent: Agent[object, object]) -> Limit | None:
    engine = agent.bindings().engine
    return engine.gate.limit if isinstance(engine, LimitedEngine) else None


@pytest.mark.parametrize("name", ["test:clerk", "clerk"])
def test_it_is_for_the_agents_that_have_the_model(name: str) -> None:
    clerk = Agent(ScriptedEngine("hi", name="clerk"), name="one")
    other = Agent(ScriptedEngine("hi", name="other"), name="two")
    found = within_limits([clerk, other], [f"{name}=rpm:5"])
    assert [limit_of(agent) for agent in found] == [Limit(5), None]
    assert found[1] is other
    assert found[0].spec == clerk.spec


def test_a_model_string_is_its_name() -> None:
    (found,) = within_limits([Agent("test:hello")], ["test:hello=concurrent:2"])
    assert limit_of(found) == Limit(max_concurrent=2)


def test_nothing_said_changes_nothing() -> None:
    agent = Agent("test")
    assert within_limits([agent], ()) == [agent]


async def test_agents_on_one_endpoint_share_it() -> None:
    never = asyncio.Event().wait
    models = [ScriptedEngine("hi", name="m", pause=never) for _ in range(2)]
    agents = [Agent(model, name=f"agent-{n}") for n, model in enumerate(models)]
    engines = [agent.bindings().engine for agent in within_limits(agents, ["m=concurrent:1"])]
    calls = [asyncio.ensure_future(engine.infer(Request((user("?"),)))) for engine in engines]
    for _ in range(5):
        await asyncio.sleep(0)
    assert [len(model.calls) for model in models] == [1, 0]
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["m=rpm:1,rpm:2"], "--endpoint m=rpm:1,rpm:2: rpm is said twice"),
        (["test:test=rpm:1", "test:test=concurrent:1"], "test:test has a limit already"),
        (["nobody=rpm:1"], "--endpoint nobody=…: no agent here has this model; they have test:test"),
    ],
)
@pytest.mark.parametrize("command", ["worker", "up"])
def test_what_cannot_be_is_one_line(flyball: Flyball, command: str, said: list[str], line: str) -> None:
    answer = flyball(command, AGENTS, *[word for one in said for word in ("--endpoint", one)])
    assert answer.code == 2
    assert line in answer.err


async def test_middleware_stays_around_a_model_that_is_limited() -> None:
    model = ScriptedEngine("hi", name="clerk")
    seen: list[float] = []
    agent = Agent(model, features=[Timing(seen.append), MaxTokens(5)])
    (limited,) = within_limits([agent], ["clerk=concurrent:1"])
    assert (await limited.run("go")).output == "hi"
    assert len(seen) == 1, "it is there once, and not around itself"
    assert isinstance(limited.bindings().model, LimitedEngine)
    assert [call.settings.max_tokens for call in model.calls] == [5]
