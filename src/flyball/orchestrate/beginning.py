"""How a run begins: from what a user passed to the first event of its journal."""

from __future__ import annotations

from typing import Any, cast

from flyball.core.encodable import NotEncodable, clean_text, to_json
from flyball.core.errors import UserError
from flyball.core.events import VERSION, Started
from flyball.core.history import check_history
from flyball.core.ids import new_id
from flyball.core.messages import Content, Message, Role, Text, user
from flyball.core.spec import LoopSpec
from flyball.orchestrate.answering import completed, open_calls
from flyball.orchestrate.lineage import under
from flyball.orchestrate.recordable import recordable
from flyball.orchestrate.snapshot import carried_by

_USER = Role.USER


def lent_by(options: Any) -> tuple[str, ...]:
    """What a run's options bring that is code, and that only a process has which is given it."""
    names = ", ".join([repr(feature.name) for feature in options.get("features") or ()])
    model = options.get("model")
    engine = () if model is None or isinstance(model, str) else ("model= with an engine",)
    return (*((f"features= ({names})",) if names else ()), *engine)


def check_question(started: Started) -> None:
    """Check that a loop begins with something that the model can answer.

    Raises:
        UserError: there is neither a prompt nor a history.
        InvalidMessage: the history ends with what is no question, and no prompt follows.
    """
    if started.prompt is not None:
        return
    if not started.history:
        raise UserError("there is nothing to run: give a prompt, or messages")
    check_history(started.history, complete=True)


def started_by(
    spec: LoopSpec, prompt: Message | None, options: Any, now: float, identity: dict[str, Any] | None = None
) -> Started:
    """The first event of a run, from its spec, its prompt, its options, and as whom it acts.

    Raises:
        UserError: an option cannot be recorded, or is none.
        InvalidMessage: the messages are no history.
    """
    history, carried = carried_by(options)
    if history:
        if (results := options.get("deferred_results")) and open_calls(history):
            history = completed(history, results, spec)
        check_history(history)
        for message in history:
            parts = message.parts
            if (
                message.usage is not None
                or len(parts) != 1
                or type(parts[0]) is not Text
                or type(parts[0].text) is not str
            ):
                recordable(message, "a message of the history")
    metadata, tool_state = _plain(options, "metadata"), _plain(options, "tool_state")
    from flyball.core.correlation import Correlation

    loop_id = options.get("loop_id")
    if loop_id is not None and (not loop_id or not isinstance(loop_id, str)):
        raise UserError(f"loop_id must be a text that is not empty, not {loop_id!r}")
    correlation = options.get("correlation") or Correlation()
    if type(correlation) is not Correlation:
        raise UserError(f"correlation= takes a Correlation, not {correlation!r}")
    recordable(correlation, "correlation")
    started = Started(
        now,
        VERSION,
        loop_id or new_id(),
        spec,
        prompt,
        history,
        correlation,
        metadata,
        carried=carried,
        tool_state=tool_state,
        identity=identity,
    )
    return under(options["parent"], started, options) if "parent" in options else started


def _plain(options: Any, name: str) -> dict[str, Any] | None:
    """An option that is recorded as JSON."""
    given = options.get(name)
    if given is None:
        return None
    try:
        plain = to_json(given, name)
    except NotEncodable as error:
        raise UserError(str(error)) from error
    if type(plain) is not dict:
        raise UserError(f"{name}= takes a dict, not {plain!r}")
    return cast("dict[str, Any]", plain)


def prompt_message(prompt: Content | None) -> Message | None:
    """A prompt as the user's message.

    Raises:
        UserError: it is empty.
        InvalidMessage: it is, or holds, what a user's message cannot carry.
    """
    if prompt is None:
        return None
    if not prompt:
        raise UserError("the prompt is empty: give text or parts, or leave it out to go on from messages")
    if isinstance(prompt, str):
        return user(clean_text(prompt))
    message = user(prompt)
    cleaned = [
        Text(clean_text(part.text), part.extra) if type(part) is Text else part for part in message.parts
    ]
    return recordable(Message(_USER, tuple(cleaned)), "the prompt")
