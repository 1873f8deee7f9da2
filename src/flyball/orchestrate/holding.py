"""Whether a model can be held to an output: found out before anything is recorded."""

from __future__ import annotations

from flyball.core.errors import GrammarUnsupported, UserError
from flyball.core.messages import user
from flyball.core.spec import OutputMode, OutputSpec
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.inference.rendered import Renders
from flyball.inference.request import OutputObject, Request


def check_can_hold(engine: Engine, output: OutputSpec) -> None:
    """Do nothing where the engine's model can be held to an output.

    Raises:
        UserError: it is asked to follow a grammar, and cannot.
        GrammarUnsupported: its engine makes a grammar of the schema, and none can say it; `path` is the place
            in the user's own schema, also where that was wrapped.
    """
    if output.grammar is not None:
        if not profile_for(engine).grammar:
            raise UserError(
                f"the model {engine.model_info().name!r} cannot be held to a grammar: take one that can, "
                "such as local, or leave the grammar out (an engine that can says so in its profile)"
            )
    elif output.schema is not None and output.mode is OutputMode.NATIVE and isinstance(engine, Renders):
        asked = OutputObject(output.schema, output.name or "output", output.description, output.strict)
        try:
            engine.rendered(Request((user("?"),), output=asked), None)
        except GrammarUnsupported as error:
            raise _in_own_schema(error, output.outer_key) from None


def _in_own_schema(error: GrammarUnsupported, outer: str | None) -> GrammarUnsupported:
    """The error with its place in the schema that was wrapped under a key, if it was."""
    path = error.details.get("path")
    wrapper = f"#/properties/{outer}"
    if outer is None or not isinstance(path, str) or not path.startswith(f"{wrapper}/"):
        return error
    own = "#" + path.removeprefix(wrapper)
    return GrammarUnsupported(error.message.replace(path, own), path=own, keyword=error.details["keyword"])
