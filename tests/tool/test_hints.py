from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from flyball.core.errors import SchemaMalformed
from flyball.tool import FunctionTool, tool

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class City:
    name: str


def parameters(made: FunctionTool[..., Any]) -> dict[str, Any]:
    return made.definition.parameters["properties"]


def test_names_of_the_enclosing_function_are_found():
    class Place(BaseModel):
        name: str

    @tool
    async def visit(place: Place, others: list[Place]) -> str:
        return place.name

    assert parameters(visit)["place"] == {"$ref": "#/$defs/Place"}


def test_the_nearest_name_wins():
    class City(BaseModel):  # pyright: ignore[reportUnusedClass] # it takes the module's for the one meant
        mayor: str

    async def visit(city: City) -> str: ...

    assert tool(visit).definition.parameters["$defs"]["City"]["properties"] == {"mayor": {"type": "string"}}


def test_names_of_a_class_inside_a_function_are_found():
    class Outer(BaseModel):
        x: int

    class Holder:
        class Inner(BaseModel):
            y: int

        @staticmethod
        def visit(outer: Outer, inner: Inner) -> str: ...

        made = tool(visit)

    assert parameters(Holder.made).keys() == {"outer", "inner"}


def test_names_are_found_through_the_closure_when_the_frame_is_gone():
    def make() -> Callable[..., Any]:
        class Place(BaseModel):
            name: str

        def visit(place: Place) -> str:
            return Place.__name__ + place.name

        return visit

    assert parameters(tool(make()))["place"] == {"$ref": "#/$defs/Place"}


def test_a_name_that_is_bound_only_later_does_not_disturb():
    @tool
    def visit(city: City) -> str:
        return city.name + later

    later = "!"
    assert visit(City("Rome")) == "Rome!"


def test_text_inside_a_type_is_resolved():
    @tool
    async def visit(cities: list["City"]) -> str:  # noqa: UP037 - the quotes are what is tested
        return ""

    assert parameters(visit)["cities"]["items"] == {"$ref": "#/$defs/City"}


def test_a_name_known_only_to_the_type_checker_is_refused():
    with pytest.raises(
        SchemaMalformed, match=r"tool 'pay'.*parameter 'amount'.*Decimal.*at run time"
    ) as caught:

        @tool
        async def pay(to: str, amount: Decimal) -> str: ...  # pyright: ignore[reportUnusedFunction]

    assert caught.value.details == {"tool": "pay", "parameter": "amount"}


def test_an_unresolvable_return_type_does_not_matter():
    @tool
    async def pay(to: str) -> Decimal: ...

    assert pay.definition.parameters["required"] == ["to"]


def test_a_wrapper_is_read_as_what_it_wraps():
    def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    @logged
    def visit(city: City, days: int = 1) -> str:
        """Visit a city."""
        return f"{city.name} {days}"

    made = tool(visit)
    assert made.definition.description == "Visit a city."
    assert parameters(made) == {"city": {"$ref": "#/$defs/City"}, "days": {"type": "integer", "default": 1}}
