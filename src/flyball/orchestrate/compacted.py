"""A history that was summed up: what is sent of it, and how a summary is made. As pure as the machine.

The order, within a turn, before its model call:

    TurnPrepared ── compact ──> compact ── ModelAnswered, ModelFailed ──> prepare, once more

What is remembered was shown to the interceptors before: the model that sums up is sent what they left, and a
summary that they will not have asked for is not asked for.

A summary takes the place of what lies between the head of the history (its system message and the user's
first) and message `stop` of it. It lasts: later turns are prepared from it, with what was said since; another
one sums it up with that. The history itself stays whole, and a run that goes on from its messages has all.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.compaction import CompactionPlan
from flyball.core.cutting import can_be_summed_up, head_of, summed_up
from flyball.core.edits import Edit, edited, moved
from flyball.core.messages import Message, Role
from flyball.core.pin import instruction_pin
from flyball.orchestrate.moves import fail, move
from flyball.orchestrate.state import Compaction, State

SUMMARY = "[Conversation Summary]"
"""What a summary begins with."""


def remembered(state: State) -> Sequence[Message]:
    """The history with the summary in the place of what it sums up: what a turn is prepared from."""
    done = state.compaction
    return state.history if done is None or done.made is None else edited(state.history, (done.made,))


def summed_up_in(state: State) -> tuple[Message, ...]:
    """What the summary stands for, as it was said; nothing where there is none."""
    made = None if state.compaction is None else state.compaction.made
    return () if made is None else tuple(state.history[made.start : made.stop])


def to_sum_up(state: State) -> Sequence[Message]:
    """What is being summed up: from the head to where the plan says, with the summary before in its place.

    It is in the words in which it would be sent: interceptors have looked at it.
    """
    assert state.compaction is not None, "there is a plan"
    messages, screened = remembered(state), state.compaction.screened
    stop = len(messages) - (len(state.history) - state.compaction.plan.stop)
    if screened:
        messages, stop = edited(messages, screened), moved(stop, screened)
    return messages[head_of(messages) : stop]


def preparations(state: State) -> int:
    """How often the turn was prepared before this: once, where a summary was wanted then."""
    return 1 if state.compaction is not None and state.compaction.turn == state.turn else 0


def may_sum_up(state: State) -> bool:
    """Whether a model may be asked for a summary: once a turn, and with room for the turn's own call."""
    if state.spec.compactor is None or preparations(state):
        return False
    return state.spec.limits.before_request(state.usage.add_request(None), state.iterations) is None


def can_be_planned(state: State, plan: CompactionPlan) -> bool:
    """Whether a plan can be carried out, and sums up more than the last one did."""
    made = None if state.compaction is None else state.compaction.made
    return (
        may_sum_up(state)
        and can_be_summed_up(state.history, plan.stop)
        and (made is None or plan.stop > made.stop)
    )


def planned(state: State, plan: CompactionPlan, screened: tuple[Edit, ...] = ()) -> None:
    """A summary is wanted, of what is remembered with these edits."""
    before = state.compaction
    if before is None:
        state.compaction = Compaction(state.turn, plan, screened=screened)
    else:
        state.compaction = replace(before, turn=state.turn, plan=plan, screened=screened)
    move(state, "compact")


def answered(state: State, message: Message) -> None:
    """A model has summed up: from now on that is sent. One that is empty or broken off is none."""
    breach = state.spec.limits.after_answer(state.usage, 0)
    text, reason = message.text.strip(), message.finish_reason
    if breach is not None:
        fail(state, breach)
    elif not text or (reason is not None and reason.cut_short):
        failed(state)
    else:
        assert state.compaction is not None, "there is a plan"
        history, stop = state.history, state.compaction.plan.stop
        pin = _pin(state, state.compaction)
        whole = f"{SUMMARY} {text}\n\n{pin}" if pin else f"{SUMMARY} {text}"
        state.compaction = replace(
            state.compaction,
            made=summed_up(history, stop, whole),
            made_in=state.turn,
            covers=len(history),
            screened=(),
            pin=pin if pin != instruction_pin(history) else "",
        )
        state.sent = state.reached = None
        move(state, "prepare")


def _pin(state: State, done: Compaction) -> str:
    """The instruction pin, in the words in which what it repeats would be sent.

    Where nobody has told the model anything since the last summary, it is the one of that.
    """
    history, made = state.history, done.made
    if made is None:
        return instruction_pin(edited(history, done.screened))
    if done.pin and not any(
        message.role is Role.USER and message.text.strip() for message in history[made.stop :]
    ):
        return done.pin
    end, longer = made.start + len(made.messages), made.stop - made.start - len(made.messages)
    before = [edit for edit in done.screened if edit.stop <= made.start]
    since = [
        replace(edit, start=edit.start + longer, stop=edit.stop + longer)
        for edit in done.screened
        if edit.start >= end
    ]
    return instruction_pin(edited(history, [*before, *since]))


def failed(state: State) -> None:
    """There is no summary: the turn goes on as if none had been wanted."""
    move(state, "prepare")
