"""What of a turn may be its output, from the state alone."""

from __future__ import annotations

from flyball.orchestrate.state import State


def candidates(state: State) -> list[tuple[int | None, str]]:
    """What a model made of what could not be read; or what a tool ended the loop with, the output calls in
    their order, the text. Each with the number of the call that carries it.
    """
    if state.mended is not None:
        return [(unread_candidate(state)[0], state.mended)]
    return _given(state)


def unread_candidate(state: State) -> tuple[int | None, str]:
    """The candidate that could not be read, and that a model is asked to put right."""
    assert state.unread is not None
    return _given(state)[state.unread.unread or 0]


def tool_of(state: State, index: int | None) -> str | None:
    """The name of the output tool that carries a candidate; None where it is text."""
    return None if index is None else state.calls[index].name


def _given(state: State) -> list[tuple[int | None, str]]:
    if state.answer is not None:
        return [(None, state.answer)]
    if not state.outputs:
        return [(None, state.history[-1].text)]
    return [(index, state.calls[index].args_json) for index in state.outputs]
