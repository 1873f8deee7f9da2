"""What a model cannot be held to is refused before anything is recorded, by its place in the schema."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, MemoryJournal, OutputMode
from flyball.constraint.protocol import PlainProtocol
from flyball.core.errors import GrammarUnsupported, UserError
from flyball.core.messages import Message
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request
from flyball.testing import ScriptedEngine

GRAMMAR = 'root ::= "yes" | "no"'


class Renderer(ScriptedEngine):
    """An engine that makes grammars of schemas, as the embedded one does."""

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        made = PlainProtocol().render(request)
        return (Prompt("the turn", made.messages, made.grammar),)


def array(**more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "integer"}, **more}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (array(uniqueItems=True), "#/uniqueItems"),
        (array(items={"not": {"const": 1}}), "#/items/not"),
        ({"type": "object", "properties": {"a": array(uniqueItems=True)}}, "#/properties/a/uniqueItems"),
        ({"$defs": {"x": {"not": {}}}, **array(items={"$ref": "#/$defs/x"})}, "#/$defs/x/not"),
    ],
    ids=["wrapped", "deep in what was wrapped", "an object", "a definition"],
)
async def test_a_schema_that_no_grammar_says(schema: dict[str, Any], path: str) -> None:
    journal = MemoryJournal()
    engine = Renderer("[]")
    agent = Agent(engine, output=schema, output_mode=OutputMode.NATIVE)
    with pytest.raises(GrammarUnsupported, match=f" at {path.replace('$', '[$]')}: ") as caught:
        await agent.run("go", journal=journal)
    assert caught.value.details["path"] == path
    assert not await journal.loops()
    assert not engine.calls


async def test_what_is_checked_and_not_held_to_may_say_anything() -> None:
    agent = Agent(
        Renderer('{"result": [1]}'), output=array(uniqueItems=True), output_mode=OutputMode.PROMPTED
    )
    assert (await agent.run("go")).output == [1]
    other = Agent(ScriptedEngine('{"result": [1]}'), output=array(uniqueItems=True), output_mode="native")
    assert (await other.run("go")).output == [1]


async def test_a_schema_that_a_grammar_says() -> None:
    agent = Agent(Renderer('{"result": [1]}'), output=array(), output_mode=OutputMode.NATIVE)
    assert (await agent.run("go")).output == [1]


def test_a_model_that_cannot_be_held_to_a_grammar_is_refused_one() -> None:
    with pytest.raises(UserError, match="the model 'test' cannot be held to a grammar"):
        Agent("test", grammar=GRAMMAR).run_sync("go")
    agent = Agent(ScriptedEngine("yes"), grammar=GRAMMAR)
    with pytest.raises(UserError, match="cannot be held to a grammar"):
        agent.run_sync("go", model="test")
    assert agent.run_sync("go").output == "yes"
