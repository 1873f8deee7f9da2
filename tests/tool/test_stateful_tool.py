"""Tools of classes whose objects remember: what they are made of, and what one call does with a state."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from msgspec import UNSET

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.messages import ResultKind, ToolResult
from flyball.tool import MAX_STATE_BYTES, ModelRetry, Tool, Toolset, as_tool, execute, stateful, tool
from tests.strategies import json_values
from tests.tool.contexts import a_call, a_context


class Remembers:
    """Remembers one thing."""

    def __init__(self, start: Any = None) -> None:
        self.state = start

    def export_state(self) -> Any:
        return self.state

    def restore_state(self, state: Any) -> None:
        self.state = state


class NoteBook(Remembers):
    """Notes."""

    def __init__(self) -> None:
        super().__init__([])

    @tool(timeout=3, strict=True)
    def note(self, text: str) -> int:
        """Write something down.

        Args:
            text: what to write
        """
        self.state.append(text)
        return len(self.state)

    @tool(name="read_notes")
    async def read(self, ctx: RunContext[str]) -> str:
        """Read it."""
        return f"{ctx.deps}: {self.state}"


class Counter(Remembers):
    """Counts."""

    state: int

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)

    async def __call__(self, by: int = 1) -> int:
        self.state += by
        return self.state


class Called(NamedTuple):
    result: ToolResult
    state: Any


async def called(made: Toolset, args: str = "{}", state: Any = UNSET, index: int = 0) -> Called:
    one = made.tools[index]
    states = None if state is UNSET else {one.spec.state or "": state}
    context = a_context("ann", tool_state=states)
    return Called(await execute(one, a_call(args), context), context.saved_tool_state)


# What is made of a class


def test_marked_methods_are_tools_that_share_a_state() -> None:
    made = stateful(NoteBook)
    assert (made.name, made.names) == ("note_book", ("note", "read_notes"))
    note = made.tools[0]
    assert isinstance(note, Tool)
    assert [one.spec.state for one in made] == ["note_book"] * 2
    assert all(one.spec.definition.sequential and one.spec.alone and one.wants_context for one in made)
    assert (note.spec.timeout, note.spec.definition.strict) == (3, True)
    assert note.spec.definition.description == "Write something down."
    assert note.spec.definition.parameters["properties"] == {
        "text": {"type": "string", "description": "what to write"}
    }
    assert made.tools[1].spec.definition.parameters["properties"] == {}
    assert repr(note) == "<StatefulTool note of note_book>"


def test_a_state_keeps_its_name_whatever_its_tools_are_called() -> None:
    made = stateful(NoteBook, name="mine").prefixed("my")
    assert made.names == ("my_note", "my_read_notes")
    assert [one.spec.state for one in made] == ["mine"] * 2


def test_a_class_that_can_be_called_is_one_tool() -> None:
    made = stateful(Counter, timeout=2, retries=4)
    assert (made.name, made.names) == ("counter", ("counter",))
    spec = made.tools[0].spec
    assert (spec.state, spec.timeout, spec.retries) == ("counter", 2, 4)
    assert spec.definition.description == "Counts."
    other = stateful(lambda: Counter(5), name="count", description="Counts well.")
    assert (other.names, other.tools[0].spec.state) == (("count",), "count")
    assert other.tools[0].spec.definition.description == "Counts well."


def test_an_object_is_what_it_was() -> None:
    book = NoteBook()
    assert book.note("a") == 1
    assert book.note(text="b") == 2
    assert NoteBook.note(book, "c") == 3


def test_what_a_class_has_in_the_place_of_its_bases_counts() -> None:
    class Short(NoteBook):
        @tool
        def note(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
            """Write nothing down."""
            return 0

    assert stateful(Short).names == ("note", "read_notes")
    assert stateful(Short).tools[0].spec.definition.description == "Write nothing down."


class NoExport:
    def restore_state(self, state: Any) -> None: ...


class Mute(Remembers): ...


@pytest.mark.parametrize(
    ("make", "options", "told"),
    [
        (NoExport, {}, r"NoExport has no export_state\(\)"),
        (lambda: [NoExport()][0], {}, r"NoExport has no export_state\(\)"),
        (Mute, {}, "Mute has neither methods that are marked with @tool nor a __call__"),
        (NoteBook, {"timeout": 3}, r"methods: give each its own options, as in @tool\(timeout=…\)"),
        (NoteBook, {"name": "two words"}, "cannot be a tool's name"),
        (Counter, {"timeot": 3}, "has no option 'timeot'"),
    ],
)
def test_what_cannot_be_a_stateful_tool_is_refused(make: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        stateful(make, **options)


def test_a_marked_method_alone_is_no_tool() -> None:
    with pytest.raises(UserError, match=r"<ToolMethod note> is a method without its object: stateful"):
        as_tool(NoteBook.note)


# What a call does


async def test_a_call_goes_on_from_the_state_and_leaves_another() -> None:
    made = stateful(NoteBook)
    assert await called(made, '{"text": "a"}') == (ToolResult("call-1", "it", 1), ["a"])
    recorded = ["a"]
    assert await called(made, '{"text": "b"}', recorded) == (ToolResult("call-1", "it", 2), ["a", "b"])
    assert recorded == ["a"], "what is recorded does not change"


async def test_a_call_that_changes_nothing_leaves_nothing() -> None:
    made = stateful(NoteBook)
    result, state = await called(made, state=["a"], index=1)
    assert (result.content, state) == ("ann: ['a']", UNSET)
    assert (await called(made, index=1)).state == [], "but the first state is one"


async def test_true_is_not_one() -> None:
    class Becomes(Remembers):
        def __call__(self) -> None:
            self.state = 1

    assert (await called(stateful(Becomes), state=True)).state == 1
    assert (await called(stateful(Becomes), state=1)).state is UNSET


@given(json_values, json_values)
async def test_any_json_is_restored_as_it_was_exported(before: Any, after: Any) -> None:
    class Swap(Remembers):
        async def __call__(self) -> Any:
            seen, self.state = self.state, after
            return seen

    result, state = await called(stateful(Swap), state=before)
    assert result.content == before
    assert (before if state is UNSET else state) == after


async def test_no_two_calls_share_an_object() -> None:
    made: list[object] = []

    def make() -> Counter:
        made.append(object())
        return Counter()

    counter = stateful(make)
    assert len(made) == 1, "to see what it makes"
    assert [(await called(counter)).state for _ in range(3)] == [1, 1, 1]
    assert len(made) == 4


class Fails(Remembers):
    """Changes its mind, and then fails."""

    async def __call__(self, how: str) -> str:
        self.state = "changed"
        match how:
            case "raise":
                raise KeyError("no")
            case "retry":
                raise ModelRetry("again")
            case "hang":
                await asyncio.Event().wait()
            case "return":
                return "too long for the validator"
            case _:
                return "fine"
        return ""


def short(_: RunContext[Any], result: str) -> None:
    if len(result) > 10:
        raise ModelRetry("too long")


FAILURES = {
    "raise": ("KeyError: 'no'", ResultKind.RETURN),
    "retry": ("again", ResultKind.RETRY),
    "hang": ("fails took longer than its time-out of 0.01 seconds", ResultKind.RETURN),
    "return": ("too long", ResultKind.RETRY),
    "fine": ("fine", ResultKind.RETURN),
}


@pytest.mark.parametrize(("how", "told", "status"), [(how, *what) for how, what in FAILURES.items()])
async def test_what_a_failed_call_left_is_not_its_result(how: str, told: str, status: ResultKind) -> None:
    """Whether the state is recorded is decided by the result: see `performers.call_tool`."""
    made = stateful(Fails, timeout=0.01, validators=[short])
    one = made.tools[0]
    result = await execute(one, a_call(f'{{"how": "{how}"}}', "fails"), a_context())
    assert (result.text, result.status) == (told, status)


async def test_a_failed_call_that_is_repeated_begins_with_the_state_as_it_was() -> None:
    tries: list[Any] = []

    class Flaky(Counter):
        async def __call__(self, by: int = 1) -> int:
            tries.append(self.state)
            self.state += by
            if len(tries) < 3:
                raise OSError
            return self.state

    assert await called(stateful(Flaky, safety="idempotent", retries=2, name="it"), state=7) == (
        ToolResult("call-1", "it", 8),
        8,
    )
    assert tries == [7, 7, 7]


async def test_a_state_that_is_no_json_is_the_calls_error() -> None:
    class Odd(Remembers):
        def __call__(self) -> None:
            self.state = {"a": [object()]}

    result, state = await called(stateful(Odd))
    assert state is UNSET
    assert result.error is not None
    assert "the state of 'odd' cannot be recorded: state['a'][0] is a object" in result.error
    assert result.metadata == {"code": "TOOL_EXECUTION_FAILED"}


async def test_a_state_that_is_too_large_is_the_calls_error() -> None:
    class Large(Remembers):
        def __call__(self) -> None:
            self.state = "a" * MAX_STATE_BYTES

    result, state = await called(stateful(Large))
    assert state is UNSET
    assert "more than the 1,048,576 allowed: keep what is large elsewhere" in (result.error or "")


async def test_whatever_restoring_raises_is_the_calls_error() -> None:
    class Picky(Counter):
        def restore_state(self, state: Any) -> None:
            raise ValueError(f"no such state: {state}")

    result, _ = await called(stateful(Picky), state=1)
    assert result.error == "ValueError: no such state: 1"
