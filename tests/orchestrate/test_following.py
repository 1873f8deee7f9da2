"""What an agent with a grammar gives follows it: also where no decoder was held to it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flyball import Agent, tool
from flyball.constraint.grammar import GrammarDefinition
from flyball.core.errors import GrammarRejected
from flyball.core.events import TurnSettled
from flyball.core.messages import Retry, ToolResult
from flyball.core.spec import OutputSpec
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.following import as_it_follows, require_followed
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import louder

YES = 'root ::= "yes" | "no"'
CITY = r'root ::= "{\"name\": \"" [A-Z] [a-z]* "\"}"'
OF_TOKENS = "root ::= <[7]>"


class City(BaseModel):
    name: str


async def test_the_model_is_told_where_and_answers_again(run: Runner) -> None:
    script = Script("perhaps", "no")
    result = await run(Agent(script, grammar=YES), "go")
    assert result.output == "no"
    (told,) = script.last.messages[-1].parts
    assert isinstance(told, Retry)
    assert "column 1: 'perhaps' may not stand there" in told.text


@pytest.mark.parametrize("validators", [[], [louder]])
async def test_in_the_end_the_run_fails_as_the_answer_did(run: Runner, validators: list[Any]) -> None:
    agent = Agent(Script("perhaps", "never"), grammar=YES, validators=validators)
    with pytest.raises(GrammarRejected) as failed:
        await run(agent, "go")
    assert failed.value.code == "CONSTRAINT_GRAMMAR_REJECTED"
    assert failed.value.details["position"] == 1, "where 'never' is no 'no' any more"


async def test_json_in_prose_is_put_right_and_then_follows_it(run: Runner) -> None:
    result = await run(Agent(Script('Here: {"name": "Rome"}'), output=City, grammar=CITY), "go")
    assert result.output == City(name="Rome")
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert [event.repairs for event in settled] == [("json",)]


async def test_json_that_the_type_takes_and_the_grammar_does_not(run: Runner) -> None:
    script = Script('{"name": "rome"}', '{"name": "Rome"}')
    result = await run(Agent(script, output=City, grammar=CITY), "go")
    assert (result.output, result.usage.requests) == (City(name="Rome"), 2)


async def test_what_a_tool_ends_the_loop_with_is_no_decoders(run: Runner) -> None:
    @tool
    async def stop() -> ToolResult:
        """Stop."""
        return ToolResult("", "", "stopped", stop_loop=True)

    assert (await run(Agent(Script(call("stop")), tools=[stop], grammar=YES), "go")).output == "stopped"


async def test_where_only_the_model_could_tell_it_is_believed(run: Runner) -> None:
    with pytest.raises(GrammarRejected):
        require_followed(OutputSpec(grammar=YES), "anything")
    require_followed(OutputSpec(grammar=OF_TOKENS), "anything")
    assert (await run(Agent(Script("anything"), grammar=OF_TOKENS), "go")).output == "anything"


def test_an_answer_as_it_follows_a_grammar() -> None:
    city = GrammarDefinition("city", CITY)
    assert as_it_follows(city, '{"name": "Rome"}', mend=True) == ('{"name": "Rome"}', False)
    mended, was_mended = as_it_follows(city, '```json\n{"name":"Rome"}\n```', mend=True)
    assert (mended, was_mended) == ('{"name":"Rome"}', True)
    for answer, mend in (('x {"name": "Rome"}', False), ("rain", True), ('{"name": "rome"', True)):
        with pytest.raises(GrammarRejected, match="does not follow the grammar 'city'"):
            as_it_follows(city, answer, mend=mend)
