"""Admit: before the first turn. Input guardrails look at the prompt, prompt functions and knowledge speak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import FlyballError, GuardrailError, UserError
from flyball.core.events import Admitted
from flyball.core.messages import Message, Part, Role, Text
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Home
from flyball.orchestrate.facts import context_of
from flyball.orchestrate.failing import as_rule, heed_takeover
from flyball.orchestrate.instructing import said_by
from flyball.orchestrate.state import State
from flyball.tool.result import describe

if TYPE_CHECKING:
    from flyball.validate.guardrails import InputGuardrail, TurnGuardrail


async def admit(state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None) -> Admitted:
    """Show the prompt to the guardrails; ask the prompt functions and the knowledge bases what to tell."""
    context = context_of(state, bindings, deps, now(), home)
    passed: tuple[str, ...] = ()
    prompt: Message | None = None
    guardrails, asked = bindings.stages.input_guardrails, _asked(state)
    if guardrails and asked is not None:
        try:
            prompt, passed = await _guarded(guardrails, context, asked)
        except FlyballError as error:
            heed_takeover(error)
            return Admitted(now(), error=error.record(), passed=passed_before(guardrails, error))
    instructions: list[str] = []
    degraded: tuple[str, ...] = ()
    relevance: float | None = None
    try:
        for function in bindings.prompt_functions:
            instructions.append(await said_by(function, context))
        if bases := bindings.stages.knowledge_bases:
            from flyball.orchestrate.knowing import known_of_run, standing

            known, degraded, relevance = await known_of_run(bases, state, context, prompt)
            if known and not state.spec.instructions and not any(instructions):
                instructions = [*standing(bases, state.history)]  # they would take its place
            instructions += known
    except Exception as error:
        return Admitted(now(), error=as_rule(error, "a prompt function failed").record())
    return Admitted(now(), tuple(instructions), prompt, passed=passed, degraded=degraded, relevance=relevance)


def refusal(guardrail: InputGuardrail | TurnGuardrail, error: Exception) -> GuardrailError:
    """What a guardrail's refusal is told as.

    Raises:
        LoopTakenOver: see `heed_takeover`.
    """
    heed_takeover(error)
    if isinstance(error, GuardrailError):
        details: dict[str, Any] = {**error.details, "guardrail": guardrail.name}
        refused = GuardrailError(error.message, **details)
    else:
        refused = GuardrailError(
            f"the guardrail {guardrail.name!r} refused: {describe(error)}", guardrail=guardrail.name
        )
    refused.__cause__ = error
    return refused


def passed_before(
    guardrails: Sequence[InputGuardrail | TurnGuardrail], error: FlyballError
) -> tuple[str, ...]:
    """The guardrails that let through what one after them refused; none where it was not a guardrail."""
    names = [guardrail.name for guardrail in guardrails]
    refused = error.details.get("guardrail")
    return tuple(names[: names.index(refused)]) if refused in names else ()


async def _guarded(
    guardrails: tuple[InputGuardrail, ...], context: RunContext[Any], asked: Message
) -> tuple[Message | None, tuple[str, ...]]:
    """The prompt as the guardrails leave it, None if they leave it alone, and who let it through.

    Raises:
        GuardrailError: one refused it.
        UserError: one gave something that is no text.
    """
    before = text = asked.text
    for guardrail in guardrails:
        try:
            given = await answer_of(guardrail.check, context, text)
        except Exception as error:
            raise refusal(guardrail, error) from error
        if given is not None and given != text and (not isinstance(given, str) or not given.strip()):
            raise UserError(
                f"the guardrail {guardrail.name!r} gave {given!r}: it must give the prompt's text, or None "
                "to leave it as it is"
            )
        text = text if given is None else clean_text(given)
    changed = _saying(asked, text) if text != before else None
    return changed, tuple([guardrail.name for guardrail in guardrails])


def _asked(state: State) -> Message | None:
    """The prompt, or, without one, the history's end; None where that is no user's, as in a fork."""
    last = state.history[-1]
    return (state.prompt or last) if last.role is Role.USER else None


def _saying(message: Message, text: str) -> Message:
    """A message with another text, where its first one stood; what is no text stays."""
    parts: list[Part] = []
    for part in message.parts:
        if type(part) is not Text:
            parts.append(part)
        elif text:
            parts.append(Text(text))
            text = ""
    return replace(message, parts=(*parts, Text(text)) if text else tuple(parts))
