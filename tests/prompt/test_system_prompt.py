"""System prompts: a base, rules under headings, what a policy adds, and where a limit cuts."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flyball import (
    Agent,
    InstructionSet,
    PromptPolicy,
    PromptProvider,
    RunContext,
    SystemPrompt,
    Toolset,
    tool,
)
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text, assistant, system
from flyball.core.tokens import by_bytes, by_words
from flyball.core.tools import ToolDefinition
from flyball.prompt.policy import ContextPolicy
from tests.orchestrate.models import Script

TONE = InstructionSet("Tone", ("Be kind.", "Be brief:\nuse few words."))
SAFETY = InstructionSet("Safety", ("Name no one.",))
LOOK = ToolDefinition(
    "look",
    {
        "type": "object",
        "properties": {"at": {"type": "string"}, "n": {"type": ["integer", "null"]}, "x": True},
        "required": ["at"],
    },
    "Look at\nsomething.",
)


def test_a_set_is_a_heading_with_a_bullet_for_each_rule() -> None:
    assert TONE.format() == "## Tone\n- Be kind.\n- Be brief:\n  use few words."
    assert InstructionSet("Empty").format() == "## Empty"
    assert TONE.build_system_prompt() == system(TONE.format())


def test_a_prompt_is_joined_by_blank_lines() -> None:
    prompt = SystemPrompt("You help.", (TONE, "Plain text.", SAFETY))
    built = prompt.build()
    assert built.role is Role.SYSTEM
    assert built.text == f"You help.\n\n{TONE.format()}\n\nPlain text.\n\n{SAFETY.format()}"
    assert prompt.build_system_prompt() == built
    assert SystemPrompt(instructions=(TONE,)).text() == TONE.format()
    assert SystemPrompt().build().parts == ()
    assert isinstance(prompt, PromptProvider)
    assert isinstance(TONE, PromptProvider)


def test_a_policy_tells_of_tools_and_of_the_schema() -> None:
    schema = {"type": "object"}
    assert SystemPrompt("You help.").described([LOOK], schema).text() == "You help."
    told = SystemPrompt("You help.", policy=PromptPolicy(include_tools=True, include_schema=True))
    assert told.text() == "You help."
    assert told.described([LOOK], schema).text() == (
        "You help.\n\n## Tools\n- look(at: string, n?: integer or null, x?: any): Look at something.\n\n"
        '## Output\nThe answer is JSON that follows this schema:\n{"type":"object"}'
    )
    assert told.described([], None).text() == "You help."


def test_a_limit_cuts_after_whole_rules() -> None:
    whole = SystemPrompt("You help.", (TONE, SAFETY))
    tokens = by_bytes(whole.text())
    assert SystemPrompt("You help.", (TONE, SAFETY), PromptPolicy(tokens)).text() == whole.text()
    cut = SystemPrompt("You help.", (TONE, SAFETY), PromptPolicy(8)).text()
    assert cut == "You help.\n\n## Tone\n- Be kind."
    assert SystemPrompt("You help.", (TONE, SAFETY), PromptPolicy(3)).text() == "You help."
    assert SystemPrompt("One two three four five.", (), PromptPolicy(3)).text() == "One two"
    assert SystemPrompt("Unbreakable", (), PromptPolicy(1)).text() == ""
    assert PromptPolicy(0).joined(["a" * 99]) == "a" * 99
    assert PromptPolicy(3).joined(["one two three"], by_words) == "one two"


_words = st.text("ab \n-", max_size=40)
_sets = st.builds(InstructionSet, st.just("Set"), st.lists(_words, max_size=4).map(tuple))
_prompts = st.builds(SystemPrompt, _words, st.lists(_sets, max_size=3).map(tuple))


@given(_prompts, st.integers(1, 60))
def test_what_is_kept_is_a_beginning_within_the_limit(prompt: SystemPrompt, most: int) -> None:
    whole = prompt.text()
    cut = SystemPrompt(prompt.base, prompt.instructions, PromptPolicy(most)).text()
    assert by_bytes(cut) <= most
    assert whole.startswith(cut)
    assert cut == whole or by_bytes(whole) > most


ANY: Any = 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: InstructionSet(""),
        lambda: InstructionSet(ANY),
        lambda: InstructionSet("x", cast("Any", "rule")),
        lambda: InstructionSet("x", (ANY,)),
        lambda: SystemPrompt(ANY),
        lambda: SystemPrompt("", cast("Any", "rules")),
        lambda: SystemPrompt("", (ANY,)),
        lambda: SystemPrompt("", ANY),
        lambda: SystemPrompt("", (), ANY),
        lambda: PromptPolicy(-1),
        lambda: PromptPolicy(cast("Any", 1.5)),
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(UserError):
        make()


def test_pagantics_name_is_there() -> None:
    assert ContextPolicy is PromptPolicy


# In an agent


class City(BaseModel):
    name: str


@tool
async def weather(city: str) -> str:
    """Weather in a city."""
    return "fair"


async def test_a_provider_is_instructions() -> None:
    model = Script("yes")
    prompt = SystemPrompt("You help.", (TONE,), PromptPolicy(include_tools=True, include_schema=True))
    result = await Agent(model, instructions=prompt, tools=[weather]).run("go")
    told = f"You help.\n\n{TONE.format()}\n\n## Tools\n- weather(city: string): Weather in a city."
    assert model.last.messages[0] == Message(Role.SYSTEM, (Text(told),))
    assert result.messages[0].text == told


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_the_schema_is_told_whatever_the_mode(mode: Any) -> None:
    prompt = SystemPrompt(policy=PromptPolicy(include_schema=True))
    agent = Agent(Script("never"), output=City, output_mode=mode, instructions=prompt)
    (function,) = agent.bindings().prompt_functions
    assert isinstance(function, SystemPrompt)
    assert '"name"' in function.text()


async def test_of_several_outputs_all_are_told() -> None:
    class River(BaseModel):
        km: float

    prompt = SystemPrompt(policy=PromptPolicy(include_schema=True))
    agent = Agent(Script("never"), output=City | River, output_mode="tool", instructions=prompt)
    (function,) = agent.bindings().prompt_functions
    assert isinstance(function, SystemPrompt)
    assert '"anyOf"' in function.text()


class Later:
    def __init__(self, given: Any) -> None:
        self.given = given

    async def build_system_prompt(self) -> Message:
        return self.given


async def test_providers_stand_beside_everything_else_in_order() -> None:
    model = Script("yes")

    def by_function(ctx: RunContext[Any]) -> SystemPrompt:
        return SystemPrompt(f"Asked: {ctx.prompt}")

    agent = Agent(model, instructions=[Later(system("one", "two")), "text", by_function, TONE])
    await agent.run("go")
    assert [part.text for part in model.last.messages[0].parts if isinstance(part, Text)] == [
        "text",
        "onetwo",
        "Asked: go",
        TONE.format(),
    ]
    assert agent.features().dynamic_instructions == 3


async def test_a_toolset_brings_a_provider() -> None:
    model = Script("yes")
    await Agent(model, tools=Toolset("sky", [weather], instructions=SAFETY)).run("go")
    assert model.last.messages[0].text == SAFETY.format()


async def test_what_is_no_system_message_fails_the_run() -> None:
    for wrong in (assistant("no"), "text", None):
        with pytest.raises(UserError, match="a prompt provider gives a system message"):
            await Agent(Script("never"), instructions=Later(wrong)).run("go")


def test_what_are_no_instructions_is_refused() -> None:
    wrong: Any
    for wrong in (3, [3], object()):
        with pytest.raises(UserError, match="instructions= takes"):
            Agent(Script("never"), instructions=wrong)
