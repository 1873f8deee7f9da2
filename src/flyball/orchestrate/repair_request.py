"""The request for a repair: what a model is sent that is to put an answer right. Pure, like the machine."""

from __future__ import annotations

from typing import Any

from flyball.core.effects import Infer
from flyball.core.encodable import as_text
from flyball.core.messages import system, user
from flyball.core.spec import OutputSpec
from flyball.inference.request import OutputObject, Request
from flyball.orchestrate.candidates import tool_of, unread_candidate
from flyball.orchestrate.state import State


def repair_request(state: State, effect: Infer) -> Request:
    """What a model is sent that is to put right what could not be read: that alone, and no history."""
    output, unread = state.spec.output, state.unread
    repairer = output.repairer
    assert repairer is not None
    assert unread is not None
    index, raw = unread_candidate(state)
    name, schema = _form(output, tool_of(state, index))
    wrong = (
        unread.error.message
        if unread.error is not None
        else unread.feedback[min(unread.unread or 0, len(unread.feedback) - 1)]
    )
    told = f"What was written:\n{raw}\n\nWhat is wrong with it:\n{wrong}"
    if schema is not None:
        told += f"\n\nThe JSON Schema that it should follow:\n{as_text(schema)}"
    return Request(
        (system(repairer.instructions), user(told)),
        settings=repairer.settings,
        output=OutputObject(schema, name, strict=output.strict) if repairer.native and schema else None,
        id=effect.id,
        deadline=state.deadline,
    )


def _form(output: OutputSpec, tool: str | None) -> tuple[str, dict[str, Any] | None]:
    """What an answer that a tool carried, or none, should look like, and what that is called."""
    for definition in output.tools:
        if definition.name == tool:
            return definition.name, definition.parameters
    return output.name or "output", output.schema
