"""What was said in a loop: what another goes on from."""

from __future__ import annotations

from flyball.core.messages import Message, Role, assistant, user
from flyball.orchestrate.contracts.asked import conversation_in
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.projections.summary import answer_of


def said_in(state: AnyState) -> tuple[Message, ...]:
    """What was said in a loop that is over, with what was said before it; not the instructions.

    Each loop has the agent's instructions anew.
    """
    if not isinstance(state, FlowState):
        return tuple([message for message in state.history if message.role is not Role.SYSTEM])
    asked = conversation_in(state.input)
    if asked is None:
        return ()
    before = (*asked.history, *([] if asked.prompt is None else [user(asked.prompt)]))
    answer = answer_of(state)
    return (*before, assistant(answer)) if answer else before
