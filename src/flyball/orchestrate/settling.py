"""Settling a turn: its answer is read as the output, put right if it can be, and validated.

The order in which an answer that is not right is put right: broken JSON, members of enumerations, the user's
own functions (`OutputRepair`); then, by the machine, a model (`ModelRepair`), and last the agent's model is
asked again. An answer that was cut off is not put right by any of them: nobody knows what is missing.
What the model wrote under a grammar is held against it first (`following`); what a tool ended the loop with
is no decoder's.
"""

from __future__ import annotations

import inspect
from typing import Any

from msgspec import UNSET

from flyball.core.context import RunContext
from flyball.core.encodable import NotEncodable, clean_text
from flyball.core.errors import (
    ConstraintFailure,
    FlyballError,
    GrammarRejected,
    SystemError,  # noqa: A004 - pagantic's name for it
    UserError,
    ValidationFailure,
)
from flyball.core.events import TurnSettled
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.candidates import candidates, tool_of
from flyball.orchestrate.children import Home
from flyball.orchestrate.facts import context_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.output import Reader
from flyball.orchestrate.reflecting import Reflected, reflection_on
from flyball.orchestrate.schema_output import SchemaReader
from flyball.orchestrate.state import State
from flyball.tool.errors import ModelRetry
from flyball.tool.feedback import capped

BY_MODEL = "model"
"""The repair that a model made."""
MAX_FEEDBACK = 100_000
"""How many characters of a validator's words the model is sent at most."""


def settle(state: State, reader: Reader, now: Any) -> tuple[TurnSettled, Any]:
    """Parse the answer as the output type; gives the event and, if accepted, the output itself."""
    feedback: list[str] = []
    refused: SystemError | None = None
    unread: int | None = None
    outputs = state.outputs
    if len(outputs) > 1 or state.answer is not None or state.mended is not None:
        found: list[tuple[int | None, str]] = candidates(state)
    elif outputs:  # the usual case: one call has it,
        found = [(outputs[0], state.calls[outputs[0]].args_json)]
    else:  # or the text
        found = [(None, state.history[-1].text)]
    for index, raw in found:
        try:
            if state.spec.output.grammar is not None:
                _require_followed(state, reader, index, raw)
            value, repairs = reader.read(raw, None if index is None else state.calls[index].name)
            if repairs:
                _refuse_if_cut(state)
            if state.mended is not None:
                repairs = (BY_MODEL, *repairs)
        except ModelRetry as retry:
            unread = _unread(state, len(feedback)) if unread is None else unread
            feedback.append(told(retry))
        except ConstraintFailure as failure:
            if _is_asked_again(state, failure):
                unread = _unread(state, len(feedback)) if unread is None else unread
                refused = failure.record()
                feedback.append(told(failure))
                continue
            return _cannot_settle(state, failure, now, _unread(state, len(feedback))), None
        except Exception as error:
            return _cannot_settle(state, as_rule(error, "the output type failed"), now), None
        else:
            output, kind = UNSET, ""
            if state.spec.output.approval:
                kind = reader.kind_of(value, tool_of(state, index))
                try:
                    output = reader.written(value)
                    value = _lasting(reader, value, output, tool_of(state, index))
                except NotEncodable as error:
                    failure = UserError(f"an output that is approved must be encodable: {error}")
                    return _cannot_settle(state, failure, now), None
                except UserError as failure:
                    return _cannot_settle(state, failure, now), None
            event = TurnSettled(now(), state.turn, True, index, output, (), repairs, kind=kind)  # noqa: FBT003
            return event, value
    event = TurnSettled(
        now(), state.turn, accepted=False, feedback=tuple(feedback), error=refused, unread=unread
    )
    return event, None


async def settle_validated(
    state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> tuple[TurnSettled, Any]:
    """Parse the answer and have the user's functions look at it: they put it right, change it, refuse it."""
    context = context_of(state, bindings, deps, now(), home)
    feedback: list[str] = []
    refused: SystemError | None = None
    unread: int | None = None
    for number, (index, raw) in enumerate(candidates(state)):
        try:
            try:
                value, before, repairs = await _read(state, bindings, context, index, raw)
            except ModelRetry:
                unread = _unread(state, number) if unread is None else unread
                raise
            except ConstraintFailure as failure:
                if not _is_asked_again(state, failure):
                    return _cannot_settle(state, failure, now, _unread(state, number)), None
                unread = _unread(state, number) if unread is None else unread
                refused = failure.record()
                feedback.append(told(failure))
                continue
            if bindings.output.text_function is not None and index is None and value is raw:
                value = await _made_of_text(bindings.output.text_function, context, raw)
                before = UNSET
            value = await _validated(value, bindings, context)
            after = bindings.output.written(value)
            reflected: Reflected | None = None
            if reflections := bindings.stages.reflections:
                reflected = await reflection_on(value, after, state, reflections, context)
                after = bindings.output.written(value)
            # A validator may also have changed the value in place, so its content is compared.
            as_said = after == before and _read_again(state, bindings.output, index, raw) == value
            if (spec := state.spec.output).approval:
                as_said = False  # who approves it is shown what will be the output, and not what was written
            if not as_said:
                value = _lasting(bindings.output, value, after, tool_of(state, index))
        except ModelRetry as retry:
            feedback.append(told(retry))
        except ValidationFailure as failure:
            if not failure.retryable:
                return _cannot_settle(state, failure, now), None
            refused = failure.record()
            feedback.append(told(failure))
        except NotEncodable as error:
            failure = UserError(f"an output that is validated must be encodable: {error}")
            return _cannot_settle(state, failure, now), None
        except Exception as error:
            return _cannot_settle(state, as_rule(error, "an output validator failed"), now), None
        else:
            if reflected is not None and not reflected.last:
                return _sent_back(state, reflected, repairs, now), None
            output = UNSET if as_said else after
            against = "" if reflected is None else reflected.feedback
            event = TurnSettled(
                now(),
                state.turn,
                True,  # noqa: FBT003
                index,
                output,
                repairs=repairs,
                reflected=against,
                kind=bindings.output.kind_of(value, tool_of(state, index)) if spec.approval else "",
            )
            return event, value
    event = TurnSettled(
        now(), state.turn, accepted=False, feedback=tuple(feedback), error=refused, unread=unread
    )
    return event, None


def _sent_back(state: State, reflected: Reflected, repairs: tuple[str, ...], now: Any) -> TurnSettled:
    """The event of a valid output that a reflection wants another of."""
    return TurnSettled(
        now(),
        state.turn,
        accepted=False,
        feedback=(reflected.correction,),
        repairs=repairs,
        reflected=reflected.feedback,
    )


async def _read(
    state: State, bindings: Bindings, context: RunContext[Any], index: int | None, raw: str
) -> tuple[Any, Any, tuple[str, ...]]:
    """The output, the JSON that replay reads as it (UNSET: none), and what was put right.

    Raises:
        ModelRetry: it cannot be read.
        ConstraintFailure: it cannot be read, and the model is not asked again.
    """
    reader, tool = bindings.output, tool_of(state, index)
    try:
        if state.spec.output.grammar is not None:
            _require_followed(state, reader, index, raw)
        value, repairs = reader.read(raw, tool)
        if repairs:
            _refuse_if_cut(state)
    except (ModelRetry, ConstraintFailure) as failure:
        value, repairs = await _repaired(state, bindings, context, tool, raw, failure)
        return value, UNSET, repairs
    if state.mended is not None:
        repairs = (BY_MODEL, *repairs)
    return value, reader.written(value), repairs


async def _repaired(  # noqa: PLR0917 - all that a repair is told
    state: State,
    bindings: Bindings,
    context: RunContext[Any],
    tool: str | None,
    raw: str,
    failure: ModelRetry | ConstraintFailure,
) -> tuple[Any, tuple[str, ...]]:
    """What the user's functions make of an answer that cannot be read: the first that can, does.

    Raises:
        ModelRetry | ConstraintFailure: none of them can.
        RuleFailed: one of them broke.
    """
    functions = bindings.stages.output_repairs if state.spec.output.repair and not _is_cut(state) else ()
    for function in functions:
        try:
            given = await answer_of(function.check, context, raw, failure)
            if given is not None:
                return bindings.output.taken(given, tool), (f"function {function.name}",)
        except (ModelRetry, ValueError, OSError, FlyballError):
            continue  # it cannot: whoever comes next may
        except Exception as error:
            raise as_rule(error, f"the output repair {function.name!r} failed") from error
    raise failure


async def _made_of_text(function: Any, context: RunContext[Any], text: str) -> Any:
    wanted = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
    ]
    try:
        return await answer_of(function, *((context, text) if len(wanted) > 1 else (text,)))
    except ModelRetry:
        raise
    except Exception as error:
        name = getattr(function, "__name__", repr(function))
        raise as_rule(error, f"the output function {name!r} failed") from error


async def _validated(value: Any, bindings: Bindings, context: RunContext[Any]) -> Any:
    for validator in bindings.validators:
        name = getattr(validator, "__name__", repr(validator))
        try:
            changed = await answer_of(validator, context, value)
        except ModelRetry:
            raise
        except Exception as error:
            raise as_rule(error, f"the output validator {name!r} failed") from error
        if changed is None and value is not None:
            raise UserError(f"the output validator {name!r} returned None: it must return the output")
        value = changed
    return value


def _require_followed(state: State, reader: Reader, index: int | None, raw: str) -> None:
    """Do nothing where what the model wrote follows its grammar.

    Raises:
        GrammarRejected: it does not; not `retryable` where the model is not asked again.
    """
    if index is not None or state.answer is not None:
        return
    from flyball.orchestrate.following import require_followed

    try:
        require_followed(state.spec.output, raw)
    except GrammarRejected as rejected:
        rejected.retryable = not isinstance(reader, SchemaReader) or reader.output.retry
        raise


def _is_asked_again(state: State, failure: ConstraintFailure) -> bool:
    """Whether the model reads what is wrong, and tries again, before the run fails with it."""
    return isinstance(failure, GrammarRejected) and failure.retryable and state.spec.output.retry


def told(retry: ModelRetry | ValidationFailure | ConstraintFailure) -> str:
    """What the model is told that must try again: text that can be written, of a size that it can read."""
    said = str(retry)
    if isinstance(retry, FlyballError):  # which was written for people
        said = f"{said[:1].upper()}{said[1:]}\nAnswer again with this put right."
    return capped(clean_text(said), MAX_FEEDBACK)


def _read_again(state: State, reader: Reader, index: int | None, raw: str) -> Any:
    """The output as who reads the journal gets it, where no code of the user's is recorded."""
    try:
        return reader.read(raw, tool_of(state, index))[0]
    except (ModelRetry, ConstraintFailure):
        return UNSET


def _lasting(reader: Reader, value: Any, written: Any, tool: str | None) -> Any:
    """The output that a user's function gave, the same for who gets it now and who reads it from the journal.

    Raises:
        UserError: it is no such output, or another one when it is read again.
    """
    again = reader.restored(written, tool)
    if again is UNSET:
        raise UserError(
            f"the output {value!r:.200} is not what the agent is to give: a validator must return an output "
            "that is valid by the type, or the schema, that was asked for"
        )
    if type(again) is type(value):
        if again == value:
            return value
        tells = type(value).__eq__ is not object.__eq__
        if isinstance(value, str) or (not tells and reader.written(again) == written):
            return again  # text with what UTF-8 cannot hold; or of a type that does not tell what is equal
    raise UserError(
        f"the output {value!r:.200} is another when it is read from the journal: {again!r:.200}. Give one "
        "that its type writes and reads back the same: valid by the type, of the type that was asked for "
        "(or that a TextOutput's function is annotated with), with no hidden or excluded fields, and with "
        "something that tells the members of a union apart"
    )


def _unread(state: State, number: int) -> int | None:
    """The number of a candidate that could not be read, where a model may be asked to put it right."""
    return None if state.spec.output.repairer is None or _is_cut(state) else number


def _is_cut(state: State) -> bool:
    """Whether the answer was cut off; what a model made of it was not."""
    reason = state.history[-1].finish_reason if state.mended is None else None
    return reason is not None and reason.cut_short


def _refuse_if_cut(state: State) -> None:
    """An answer that was cut off is not mended, because what is missing cannot be known."""
    if _is_cut(state):
        raise ModelRetry("The answer was cut off before its end. Answer again, and more briefly.")


def _cannot_settle(state: State, failure: FlyballError, now: Any, unread: int | None = None) -> TurnSettled:
    return TurnSettled(now(), state.turn, accepted=False, error=failure.record(), unread=unread)
