"""Runs of agents whose instructions are templates, as a table: they join `scenarios.SCENARIOS`."""

from __future__ import annotations

from typing import Any

from flyball import (
    Agent,
    Deps,
    InstructionSet,
    JinjaTemplate,
    PromptPolicy,
    RunContext,
    SystemPrompt,
    Template,
    Toolset,
    tool,
)
from flyball.core.messages import Message, system
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario

GREETING = Template("You serve {{.Who}}{{with .Where}} in {{.}}{{end}}.", "greeting")


@tool
async def count(name: str) -> int:
    """Count the letters of a name."""
    return len(name)


async def by_metadata(ctx: RunContext[Any]) -> Template:
    """What a run is told travels with it, wherever it is carried on."""
    return GREETING.partial(ctx.metadata, Where="{{.Who}}")


class Shop:
    """Dependencies that have values."""

    async def template_vars(self) -> dict[str, str]:
        return {"Who": "Ann", "Where": "{{.Who}}"}


RULES = InstructionSet("Rules", ("Be brief.", "Be right."))


class Later:
    """A provider that has to wait."""

    async def build_system_prompt(self) -> Message:
        return system("It is late.")


class Failing:
    """A provider that cannot."""

    def build_system_prompt(self) -> Message:
        raise LookupError("no such prompt")


PROMPTS = (
    Scenario(
        "a template with the values of the dependencies",
        lambda: Agent(Script("yes"), instructions=GREETING, features=[Deps(Shop())]),
        "yes",
    ),
    Scenario(
        "templates as instructions",
        lambda: Agent(
            Script(call("count", {"name": "Oslo"}), "four"),
            instructions=["Be brief.", GREETING.partial(Who="Ann", Where=None), by_metadata],
            tools=Toolset("letters", [count], instructions=Template("{{if .X}}Count.{{end}}").partial(X=1)),
        ),
        "four",
        options={"metadata": {"who": "nobody", "Who": "{{end}}"}},
    ),
    Scenario(
        "prompt providers, and a template of Jinja's",
        lambda: Agent(
            Script(call("count", {"name": "Oslo"}), "four"),
            tools=[count],
            instructions=[
                SystemPrompt("You count.", (RULES,), PromptPolicy(200, include_tools=True)),
                Later(),
                lambda _: RULES,
                JinjaTemplate("{% for one in Who %}{{ one }};{% endfor %}").partial(Who=["a", "{{ b }}"]),
            ],
        ),
        "four",
    ),
    Scenario(
        "a prompt provider that fails",
        lambda: Agent(Script("never"), instructions=Failing()),
        code="VALIDATION_RULE_FAILED",
    ),
    Scenario(
        "a template without its values",
        lambda: Agent(Script("never"), instructions=["Be brief.", GREETING]),
        code="CONFIG_DEPS",
    ),
    Scenario(
        "a template with too few values",
        lambda: Agent(Script("never"), instructions=by_metadata),
        code="CONFIG_DEPS",
    ),
)
