"""What an agent is told first: from what a user gave as instructions to the text that a run begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role
from flyball.core.prompting import provides_prompt
from flyball.core.spec import OutputSpec
from flyball.core.tools import ToolDefinition
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import Instruction, PromptFunction


def as_instructions(given: Any) -> tuple[Instruction, ...]:
    """What a user passed as `instructions=`.

    Raises:
        UserError: it is neither text, nor a function, a template, a prompt provider, or several of them.
    """
    if isinstance(given, str):
        return (given,) if given else ()
    if callable(given) or provides_prompt(given):
        return (cast("Instruction", given),)
    if not isinstance(given, Iterable):
        raise UserError(f"instructions= takes text, a function, or several of them, not {given!r:.200}")
    several = tuple(cast("Iterable[Any]", given))
    for one in several:
        if not (isinstance(one, str) or callable(one) or provides_prompt(one)):
            raise UserError(f"instructions= takes text, a function, or several of them, not {one!r:.200}")
    return several


def asked_for(
    instructions: Iterable[Instruction], tools: Sequence[ToolDefinition], output: OutputSpec
) -> tuple[Instruction, ...]:
    """The instructions that are asked for when a run begins: those that tell of the agent know it."""
    found: list[Instruction] = []
    for one in instructions:
        if isinstance(one, str):
            continue
        describe = getattr(one, "described", None)
        found.append(one if describe is None else describe(tools, _schema(output)))
    return tuple(found)


def _schema(output: OutputSpec) -> dict[str, Any] | None:
    """The schema that answers follow; of several, that of any of them."""
    if output.schema is not None or not output.tools:
        return output.schema
    schemas = [definition.parameters for definition in output.tools]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


async def said_by(instruction: Instruction, context: RunContext[Any]) -> str:
    """The text that an instruction comes to for a run; none, where a function gives None.

    Raises:
        UserError: a function gave something that is no text, or a provider what is no system message.
        Exception: whatever it raised.
    """
    said: Any = instruction
    if not provides_prompt(said):
        said = await answer_of(cast("PromptFunction", said), context)
        if not isinstance(said, str) and callable(said):
            said = await answer_of(said, context)  # a template
    if provides_prompt(said):
        said = await answer_of(said.build_system_prompt)
        if not isinstance(said, Message) or said.role is not Role.SYSTEM:
            raise UserError(f"a prompt provider gives a system message, not {said!r:.200}")
        said = said.text
    if said is None:
        return ""
    if not isinstance(said, str):
        name = getattr(instruction, "__name__", repr(instruction))
        raise UserError(
            f"the prompt function {name!r} gave {said!r:.100}: it must give text, a template, or None for "
            "nothing"
        )
    return clean_text(said)
