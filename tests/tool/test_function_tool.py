from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, assert_type, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.tools import Safety
from flyball.tool import FunctionTool, ModelRetry, Tool, as_tool, tool
from tests.patience import PATIENCE
from tests.tool.contexts import a_context


@tool
async def weather(city: str, days: int = 1) -> str:
    """Weather in a city."""
    return f"{city} {days}"


async def test_it_can_be_called_as_the_function_it_was():
    assert_type(await weather("Paris"), str)
    assert await weather("Paris", days=2) == "Paris 2"
    assert str(inspect.signature(weather)) == "(city: 'str', days: 'int' = 1) -> 'str'"


if TYPE_CHECKING:
    # Both forms of the decorator keep the types, and what the function would not take, the tool does not.
    assert_type(tool(len)(""), int)
    assert_type(tool(name="other")(len)(""), int)
    tool(len)(1)  # pyright: ignore[reportArgumentType]


def test_it_is_a_tool():
    made: Tool = weather
    assert isinstance(made, Tool)
    assert (weather.name, weather.definition.description) == ("weather", "Weather in a city.")
    assert repr(weather) == "<FunctionTool weather>"


async def test_running_validates_and_leaves_defaults_to_the_function():
    assert await weather.run('{"city": "Paris"}', None) == "Paris 1"
    assert await weather.run('{"city": "Paris", "days": "3"}', None) == "Paris 3"


class Stay(BaseModel):
    nights: int
    begins: date
    price: float = 0


@pytest.mark.parametrize(
    "args_json",
    [
        '{"city": "Rome", "stay": {"nights": "2", "begins": "2026-01-02"}}',
        '{"city": "Rome", "stay": {"nights": 2.0, "begins": "2026-01-02"}}',
        '{"city": 7, "stay": {"nights": 2, "begins": "2026-01-02"}}',
    ],
)
async def test_a_strict_tool_takes_nothing_for_something_else(args_json: str):
    async def book(city: str, stay: Stay) -> str:
        return f"{city} {stay.nights} {stay.begins:%d}"

    strict, loose = tool(strict=True)(book), tool(strict=False)(book)
    assert strict.definition.parameters == loose.definition.parameters
    with pytest.raises(ModelRetry, match="arguments are wrong"):
        await strict.run(args_json, None)
    if '"Rome"' in args_json:  # a number is no text in either
        assert await loose.run(args_json, None) == "Rome 2 02"
    whole = '{"city": "Rome", "stay": {"nights": 2, "begins": "2026-01-02", "price": 3}}'
    assert await strict.run(whole, None) == "Rome 2 02"


async def test_sync_functions_run_off_the_loops_thread_with_its_context_variables():
    place = contextvars.ContextVar("place", default="nowhere")
    seen: list[tuple[int, str]] = []

    @tool
    def look() -> str:
        seen.append((threading.get_ident(), place.get()))
        return "seen"

    place.set("here")
    assert await look.run("{}", None) == "seen"
    [(thread, where)] = seen
    assert where == "here"
    assert thread != threading.get_ident()


async def test_async_functions_run_on_the_loop_without_a_layer_between():
    coroutine = weather.run('{"city": "Paris"}', None)
    assert coroutine.cr_code is weather.__wrapped__.__code__  # pyright: ignore[reportFunctionMemberAccess]
    assert await coroutine == "Paris 1"


async def test_a_sync_tool_that_raises_stop_iteration_does_not_hang():
    @tool
    def first() -> object:
        return next(iter(()))

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await first.run("{}", None)


async def test_a_plain_wrapper_around_an_async_function_is_awaited():
    def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(**arguments: Any) -> Any:
            return fn(**arguments)

        return wrapper

    @logged
    async def add(a: int, b: int) -> int:
        return a + b

    assert await tool(add).run('{"a": 1, "b": 2}', None) == 3


async def test_the_context_comes_first_and_is_not_in_the_schema():
    @tool
    async def who(ctx: RunContext[str], name: str) -> str:
        return f"{ctx.deps} {name} {ctx.tool_call_id}"

    assert who.wants_context
    assert not weather.wants_context
    assert who.definition.parameters["properties"].keys() == {"name"}
    assert await who.run('{"name": "x"}', a_context("deps", tool_call_id="c7")) == "deps x c7"
    with pytest.raises(UserError, match="without one"):
        await who.run('{"name": "x"}', None)


async def test_a_sync_tool_gets_its_context_too():
    @tool
    def who(ctx: RunContext[str]) -> str:
        return ctx.get_deps(str)

    assert await who.run("{}", a_context("deps")) == "deps"


def test_a_context_in_another_place_is_refused():
    with pytest.raises(UserError, match="'ctx' must be the first"):

        @tool
        async def who(name: str, ctx: RunContext[str]) -> str: ...  # pyright: ignore[reportUnusedFunction]


class Shop:
    def __init__(self, stock: int) -> None:
        self.stock = stock

    def sell(self, count: int) -> int:
        """Sell some.

        Args:
            count: How many.
        """
        return self.stock - count

    async def __call__(self, count: int) -> int:
        """Count them."""
        return self.stock + count


async def test_bound_methods_partials_and_objects_can_be_tools():
    sell = tool(Shop(5).sell)
    assert sell.definition.parameters["properties"]["count"]["description"] == "How many."
    assert await sell.run('{"count": 2}', None) == 3

    count = tool(name="count")(Shop(5))
    assert (count.name, count.definition.description) == ("count", "Count them.")
    assert await count.run('{"count": 2}', None) == 7

    seven = tool(name="seven")(functools.partial(weather.__wrapped__, days=7))
    assert seven.definition.description == "Weather in a city."
    assert await seven.run('{"city": "Rome"}', None) == "Rome 7"


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
async def test_blank_arguments_are_none(blank: str):
    @tool
    async def now() -> str:
        return "now"

    assert await now.run(blank, None) == "now"
    with pytest.raises(ModelRetry, match="city: Field required"):
        await weather.run(blank, None)


class TestOptions:
    def test_all_of_them_reach_the_spec(self):
        @tool(
            name="other",
            description="Says so.",
            timeout=2.5,
            retries=3,
            sequential=True,
            approval=True,
            safety="idempotent",
            available=lambda: True,
            strict=True,
            history=True,
        )
        async def fn(ctx: RunContext[None]) -> str: ...

        spec = fn.spec
        assert (spec.definition.name, spec.definition.description) == ("other", "Says so.")
        assert (spec.definition.strict, spec.definition.sequential) == (True, True)
        assert (spec.timeout, spec.retries, spec.approval) == (2.5, 3, True)
        assert spec.safety is Safety.IDEMPOTENT
        assert (spec.checks_availability, spec.wants_history) == (True, True)

    def test_without_them_nothing_is_on(self):
        spec = weather.spec
        assert (spec.timeout, spec.retries, spec.approval, spec.checks_availability) == (
            None,
            None,
            False,
            False,
        )
        assert spec.safety is Safety.AT_LEAST_ONCE
        assert (spec.wants_history, spec.definition.strict, spec.definition.sequential) == (
            False,
            None,
            False,
        )

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"timeout": 0}, "timeout=0 cannot be"),
            ({"timeout": -1.5}, "timeout=-1.5 cannot be"),
            ({"timeout": float("nan")}, "timeout=nan cannot be"),
            ({"timeout": float("inf")}, "timeout=inf cannot be"),
            ({"timeout": "5"}, "timeout='5' cannot be"),
            ({"timeout": True}, "timeout=True cannot be"),
            ({"retries": -1}, "retries=-1 cannot be"),
            ({"retries": 1.5}, "retries=1.5 cannot be"),
            ({"retries": True}, "retries=True cannot be"),
            (
                {"safety": "sometimes"},
                "safety='sometimes' cannot be.*idempotent, at_least_once, at_most_once",
            ),
            ({"approval": "yes"}, "approval='yes' cannot be"),
            ({"sequential": 1}, "sequential=1 cannot be"),
            ({"sequential": None}, "sequential=None cannot be"),
            ({"strict": "no"}, "strict='no' cannot be"),
            ({"available": True}, "available=True cannot be"),
            ({"description": 3}, "description=3 cannot be"),
            ({"history": True}, "no RunContext to read it from"),
            ({"time_out": 3}, "no option 'time_out'; there are name, description, timeout"),
            ({"name": "two words"}, "'two words' cannot be a tool's name"),
            ({"name": ""}, "'' cannot be a tool's name"),
            ({"name": "x" * 65}, "cannot be a tool's name"),
            ({"name": "café"}, "cannot be a tool's name"),
            ({"name": "line\n"}, "cannot be a tool's name"),
        ],
    )
    def test_what_cannot_be_is_refused(self, options: dict[str, Any], told: str):
        async def fn(x: int) -> str: ...

        with pytest.raises(UserError, match=told):
            tool(**options)(fn)

    @given(st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True))
    def test_every_name_that_providers_take_is_taken(self, name: str):
        async def fn() -> str: ...

        assert tool(name=name)(fn).name == name


async def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (lambda: 1, "'<lambda>' cannot be a tool's name.*give it another"),
        (functools.partial(print, 1), "has no name; give it one"),
        (Shop(1), "has no name; give it one"),
        (Shop, "is the class Shop"),
        (generator, "is a generator"),
        (max, "its signature cannot be read"),
        ("name", "made from a function, not from 'name'.*options go by name"),
        (weather, "is a tool already"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(what: Any, told: str):
    with pytest.raises(UserError, match=told):
        tool(what)


def test_as_tool_takes_both():
    def add(a: int) -> int: ...

    assert as_tool(weather) is weather
    assert as_tool(add).spec.definition.name == "add"
    with pytest.raises(UserError, match="is the class FunctionTool"):
        as_tool(FunctionTool)
    with pytest.raises(UserError, match=r"a method without its object.*bound one, tool\(obj.method\)"):
        as_tool(Shop.sell)
    with pytest.raises(UserError, match=r"<ToolMethod sell> is a method without its object: stateful"):
        as_tool(tool(Shop.sell))


class TestAvailability:
    async def test_without_a_check_it_is_available(self):
        assert await weather.available(a_context()) is True

    @pytest.mark.parametrize(
        ("answer", "told"), [(True, True), (False, False), ("no key", "no key"), (None, False)]
    )
    async def test_the_check_may_take_the_context_and_be_async(self, answer: Any, told: bool | str):
        def plain() -> bool | str:
            return answer

        async def asynchronous(ctx: RunContext[Any]) -> bool | str:
            assert ctx.deps == "deps"
            return answer

        async def fn() -> str: ...

        for check in (plain, asynchronous, lambda ctx: answer):  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]
            made = tool(available=cast("Any", check))(fn)
            assert made.spec.checks_availability
            assert await made.available(a_context("deps")) == told
