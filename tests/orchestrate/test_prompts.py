"""Templates as instructions: filled once, when a run begins, from its deps; what they became is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from flyball import Agent, FlyballError, MemoryJournal, RunContext, RunResult, Template, TemplateVars
from flyball.core.errors import DepsError, TemplateError, TemplateVariableMissing, UserError
from flyball.core.events import Admitted
from flyball.testing import ScriptedEngine


class Shop:
    """Dependencies that have values for templates, and count how often they are asked."""

    def __init__(self, **values: Any) -> None:
        self.values, self.asked = values, 0

    def template_vars(self) -> Mapping[str, Any]:
        self.asked += 1
        return self.values


class SlowShop(Shop):
    async def template_vars(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().template_vars()


GREETING = Template("You serve at {{.Name}}.", "greeting")


def told(result: RunResult[Any]) -> list[str]:
    return [part.text for part in result.messages[0].parts]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


@pytest.mark.parametrize(
    "deps",
    [{"Name": "The Leaf", "more": 1}, Shop(Name="The Leaf"), SlowShop(Name="The Leaf", More=1)],
    ids=lambda deps: type(deps).__name__,  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
)
async def test_values_come_from_the_dependencies(deps: Any) -> None:
    agent = Agent(ScriptedEngine("yes"), instructions=[GREETING, "Be brief."])
    result = await agent.run("Tea?", deps=deps)
    assert told(result) == ["Be brief.", "You serve at The Leaf."]


async def test_a_shop_has_template_vars_and_a_mapping_need_not() -> None:
    assert isinstance(Shop(), TemplateVars)
    assert not isinstance({}, TemplateVars)


async def test_a_prompt_function_may_give_a_template() -> None:
    agent = Agent(ScriptedEngine("yes"))

    @agent.instructions
    def greet(ctx: RunContext[Any]) -> Template:
        return GREETING if ctx.prompt == "Tea?" else Template("")

    @agent.instructions
    async def warn(ctx: RunContext[Any]) -> Template:
        return Template("{{.Name}} sells {{.What}} only.").partial(What=ctx.prompt)

    result = await agent.run("Tea?", deps={"Name": "The {{.What}} Leaf"})
    assert told(result) == ["You serve at The {{.What}} Leaf.", "The {{.What}} Leaf sells Tea? only."]
    assert agent.features().used == ("dynamic_instructions",)


async def test_what_a_function_says_is_never_read_as_a_template() -> None:
    agent = Agent(ScriptedEngine("yes"), instructions=lambda ctx: f"The user wants: {ctx.prompt}")
    result = await agent.run("{{.Secret}} \ud800", deps={"Secret": "1234"})
    assert told(result) == ["The user wants: {{.Secret}} \ufffd"]


@pytest.mark.parametrize(
    ("deps", "error", "what"),
    [
        (None, DepsError, "template 'greeting' needs Name, and the run has no deps: pass a mapping"),
        (object(), DepsError, "and the run's deps are a object: pass a mapping"),
        (Shop(), TemplateVariableMissing, "template 'greeting' needs Name, and there is nothing"),
        ({"name": 1}, TemplateVariableMissing, "template 'greeting' needs Name, and there is only name"),
        ({"Name": []}, TemplateError, "go through it by range"),
    ],
    ids=["none", "another", "too few", "misspelt", "wrong"],
)
async def test_without_its_values_a_run_fails_before_the_model_is_called(
    deps: Any, error: type[FlyballError], what: str
) -> None:
    engine = ScriptedEngine("never")
    with pytest.raises(error, match=what):
        await Agent(engine, instructions=GREETING).run("Tea?", deps=deps)
    assert engine.calls == []


async def test_template_vars_must_give_a_mapping() -> None:
    class Odd:
        def template_vars(self) -> Any:
            return ["Name"]

    with pytest.raises(DepsError, match=r"template_vars\(\) of the Odd gave no mapping, but \['Name'\]"):
        await Agent(ScriptedEngine("never"), instructions=GREETING).run("Tea?", deps=Odd())


async def test_what_it_became_is_recorded_and_not_asked_for_again() -> None:
    journal, shop = MemoryJournal(), Shop(Name="The Leaf")
    agent = Agent(ScriptedEngine("yes", "again"), instructions=GREETING)
    result = await agent.run("Tea?", deps=shop, journal=journal, loop_id="tea")
    (admitted,) = [event for event in await result.events() if isinstance(event, Admitted)]
    assert admitted.instructions == ("You serve at The Leaf.",)
    assert (await agent.replay("tea", journal)).messages == result.messages
    # Cut off before the model was called, it goes on with what was recorded; by a shop of another name, too.
    await journal.append("cut", (await result.events())[:2], 0)
    resumed = await agent.resume("cut", journal, deps=Shop(Name="Another"))
    assert told(resumed) == ["You serve at The Leaf."]
    assert shop.asked == 1


@pytest.mark.parametrize("given", [None, ""], ids=repr)
async def test_a_prompt_function_may_have_nothing_to_say(given: Any) -> None:
    def silent(ctx: RunContext[Any]) -> str | None:
        return given

    result = await Agent(ScriptedEngine("yes"), instructions=[silent, "Be brief."]).run("Tea?")
    assert told(result) == ["Be brief."]
    result = await Agent(ScriptedEngine("yes"), instructions=silent).run("Tea?")
    assert result.messages[0].role == "user"


@pytest.mark.parametrize("given", [7, ["Be brief."], b"Be brief.", True], ids=repr)
async def test_what_a_prompt_function_says_is_text(given: Any) -> None:
    def odd(ctx: RunContext[Any]) -> Any:
        return given

    with pytest.raises(UserError, match="the prompt function 'odd' gave"):
        await Agent(ScriptedEngine("yes"), instructions=odd).run("Tea?")
