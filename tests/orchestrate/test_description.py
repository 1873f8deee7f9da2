"""What an agent is for: told to whoever may ask it, and not to its own model."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent
from flyball.core.errors import UserError
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service
from flyball.testing import ScriptedEngine


async def test_a_description_is_for_those_who_ask() -> None:
    engine = ScriptedEngine("Hello.")
    greeter = Agent(engine, name="greeter", description="Greets people.")
    assert greeter.as_tool().spec.definition.description == "Greets people."
    assert greeter.as_tool(description="Says hello.").spec.definition.description == "Says hello."
    assert Agent("test", name="other").as_tool().spec.definition.description == "Ask the agent 'other'."
    assert Service([greeter], LocalRuntime()).agent("greeter").description == "Greets people."
    await greeter.run("Hi")
    assert "Greets" not in repr(engine.calls)


def test_a_description_is_text() -> None:
    wrong: Any = 7
    with pytest.raises(UserError, match="description= takes text, not 7"):
        Agent("test", description=wrong)
