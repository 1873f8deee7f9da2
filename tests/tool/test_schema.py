from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from flyball.core.context import RunContext
from flyball.core.errors import SchemaMalformed
from flyball.tool import tool
from flyball.tool.schema import without_titles


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    """Somewhere."""

    name: str
    title: str = Field("none", title="Its title", description="How it is called.")


class Trip(BaseModel):
    stops: list[Place]
    then: "Trip | None" = None


@dataclass
class Point:
    x: int
    y: int = 0


class Opening(TypedDict):
    day: str
    hour: NotRequired[int]


def schema(fn: Callable[..., Any]) -> dict[str, Any]:
    return tool(fn).definition.parameters


def test_no_parameters():
    def f() -> str: ...

    assert schema(f) == snapshot({"additionalProperties": False, "properties": {}, "type": "object"})


def test_plain_types():
    def f(
        *,
        text: str,
        count: int,
        ratio: float,
        flag: bool,
        when: date,
        anything: Any,
        untyped: Any,
    ) -> str: ...

    del f.__annotations__["untyped"]
    assert schema(f) == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "when": {"format": "date", "type": "string"},
                "anything": {},
                "untyped": {},
            },
            "required": ["text", "count", "ratio", "flag", "when", "anything", "untyped"],
            "type": "object",
        }
    )


def test_defaults():
    def f(a: int = 3, b: str | None = None, c: list[int] = [1, 2], d: Colour = Colour.RED) -> str: ...  # noqa: B006

    assert schema(f) == snapshot(
        {
            "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
            "additionalProperties": False,
            "properties": {
                "a": {"type": "integer", "default": 3},
                "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "c": {"items": {"type": "integer"}, "type": "array", "default": [1, 2]},
                "d": {"$ref": "#/$defs/Colour", "default": "red"},
            },
            "type": "object",
        }
    )


def test_a_default_without_json_form_is_not_shown():
    def f(a: Any = object()) -> str: ...  # noqa: B008

    assert schema(f) == snapshot({"additionalProperties": False, "properties": {"a": {}}, "type": "object"})


def test_a_pydantic_model():
    def f(place: Place) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Place": {
                    "description": "Somewhere.",
                    "properties": {
                        "name": {"type": "string"},
                        "title": {"default": "none", "description": "How it is called.", "type": "string"},
                    },
                    "required": ["name"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {"place": {"$ref": "#/$defs/Place"}},
            "required": ["place"],
            "type": "object",
        }
    )


def test_nested_and_recursive_models():
    def f(trip: Trip) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Place": {
                    "description": "Somewhere.",
                    "properties": {
                        "name": {"type": "string"},
                        "title": {"default": "none", "description": "How it is called.", "type": "string"},
                    },
                    "required": ["name"],
                    "type": "object",
                },
                "Trip": {
                    "properties": {
                        "stops": {"items": {"$ref": "#/$defs/Place"}, "type": "array"},
                        "then": {"anyOf": [{"$ref": "#/$defs/Trip"}, {"type": "null"}], "default": None},
                    },
                    "required": ["stops"],
                    "type": "object",
                },
            },
            "additionalProperties": False,
            "properties": {"trip": {"$ref": "#/$defs/Trip"}},
            "required": ["trip"],
            "type": "object",
        }
    )


class Own(BaseModel):
    name: str

    @classmethod
    def __json_schema__(cls) -> Any:
        return {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}


class OwnBroken(BaseModel):
    @classmethod
    def __json_schema__(cls) -> Any:
        raise KeyError("no such thing")


def test_a_type_s_own_schema():
    def f(one: Own, many: list[Own]) -> str: ...

    assert schema(f)["$defs"] == {"Own": Own.__json_schema__()}


def test_a_type_that_fails_to_say_its_own_schema():
    def f(one: Own, other: list[OwnBroken]) -> str: ...

    with pytest.raises(SchemaMalformed, match=r"parameter 'other'.*OwnBroken"):
        schema(f)


def test_a_dataclass():
    def f(point: Point = Point(1)) -> str: ...  # noqa: B008

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Point": {
                    "additionalProperties": False,
                    "properties": {"x": {"type": "integer"}, "y": {"default": 0, "type": "integer"}},
                    "required": ["x"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {"point": {"$ref": "#/$defs/Point", "default": {"x": 1, "y": 0}}},
            "type": "object",
        }
    )


def test_a_typed_dict():
    def f(opening: Opening) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Opening": {
                    "additionalProperties": False,
                    "properties": {"day": {"type": "string"}, "hour": {"type": "integer"}},
                    "required": ["day"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {"opening": {"$ref": "#/$defs/Opening"}},
            "required": ["opening"],
            "type": "object",
        }
    )


def test_literals_and_enumerations():
    def f(unit: Literal["C", "F"], colour: Colour) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
            "additionalProperties": False,
            "properties": {
                "unit": {"enum": ["C", "F"], "type": "string"},
                "colour": {"$ref": "#/$defs/Colour"},
            },
            "required": ["unit", "colour"],
            "type": "object",
        }
    )


def test_unions():
    def f(a: int | str, b: Place | Point | None) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Place": {
                    "description": "Somewhere.",
                    "properties": {
                        "name": {"type": "string"},
                        "title": {"default": "none", "description": "How it is called.", "type": "string"},
                    },
                    "required": ["name"],
                    "type": "object",
                },
                "Point": {
                    "additionalProperties": False,
                    "properties": {"x": {"type": "integer"}, "y": {"default": 0, "type": "integer"}},
                    "required": ["x"],
                    "type": "object",
                },
            },
            "additionalProperties": False,
            "properties": {
                "a": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "b": {"anyOf": [{"$ref": "#/$defs/Place"}, {"$ref": "#/$defs/Point"}, {"type": "null"}]},
            },
            "required": ["a", "b"],
            "type": "object",
        }
    )


def test_containers():
    def f(
        a: list[int], b: dict[str, float], c: tuple[int, str], d: set[str], e: list[dict[str, Place]]
    ) -> str: ...

    assert schema(f) == snapshot(
        {
            "$defs": {
                "Place": {
                    "description": "Somewhere.",
                    "properties": {
                        "name": {"type": "string"},
                        "title": {"default": "none", "description": "How it is called.", "type": "string"},
                    },
                    "required": ["name"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {
                "a": {"items": {"type": "integer"}, "type": "array"},
                "b": {"additionalProperties": {"type": "number"}, "type": "object"},
                "c": {
                    "maxItems": 2,
                    "minItems": 2,
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "type": "array",
                },
                "d": {"items": {"type": "string"}, "type": "array", "uniqueItems": True},
                "e": {
                    "items": {"additionalProperties": {"$ref": "#/$defs/Place"}, "type": "object"},
                    "type": "array",
                },
            },
            "required": ["a", "b", "c", "d", "e"],
            "type": "object",
        }
    )


def test_annotated():
    def f(
        city: Annotated[str, Field(description="The city.", min_length=1)],
        days: Annotated[int, Field(ge=1, le=7)] = 1,
        hours: int = Field(24, ge=1, description="How long."),
        *,
        minutes: int = Field(description="Needed."),
    ) -> str:
        """Weather.

        Args:
            city: Not this one.
            days: How many days.
        """
        return ""

    assert schema(f) == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "city": {"description": "The city.", "minLength": 1, "type": "string"},
                "days": {
                    "maximum": 7,
                    "minimum": 1,
                    "type": "integer",
                    "description": "How many days.",
                    "default": 1,
                },
                "hours": {"default": 24, "description": "How long.", "minimum": 1, "type": "integer"},
                "minutes": {"description": "Needed.", "type": "integer"},
            },
            "required": ["city", "minutes"],
            "type": "object",
        }
    )


def test_docstring_and_context():
    async def forecast(ctx: RunContext[int], city: str, days: int = 1) -> str:
        """The weather to come.

        Args:
            ctx: The run.
            city: Where.
            days: How long.
        """
        return ""

    definition = tool(forecast).definition
    assert (definition.name, definition.description) == ("forecast", "The weather to come.")
    assert definition.parameters == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "days": {"type": "integer", "description": "How long.", "default": 1},
            },
            "required": ["city"],
            "type": "object",
        }
    )


def test_a_property_called_title_stays():
    def f(title: str, properties: dict[str, str]) -> str: ...

    assert schema(f)["properties"].keys() == {"title", "properties"}


def test_titles_in_data_stay():
    given = {
        "title": "T",
        "const": {"title": "x"},
        "properties": {"title": {"title": "T", "default": {"title": 1}}},
    }
    assert without_titles(given) == {
        "const": {"title": "x"},
        "properties": {"title": {"default": {"title": 1}}},
    }


class Opaque:
    pass


@pytest.mark.parametrize("kind", [Opaque, Callable[[], int], "Nowhere", list[Opaque], complex | Opaque])
def test_a_type_without_schema_is_refused_with_the_parameter_named(kind: Any):
    def f(good: int, bad: Any) -> str: ...

    f.__annotations__["bad"] = kind
    with pytest.raises(SchemaMalformed, match=r"tool 'f'.*parameter 'bad'") as caught:
        tool(f)
    assert caught.value.details == {"tool": "f", "parameter": "bad"}


def positional_only(a: int, /) -> None: ...
def var_positional(*a: int) -> None: ...
def var_keyword(**a: int) -> None: ...


@pytest.mark.parametrize("fn", [positional_only, var_positional, var_keyword])
def test_parameters_without_a_fixed_name_are_refused(fn: Callable[..., Any]):
    with pytest.raises(SchemaMalformed, match=r"parameter '.*a'"):
        tool(fn)


def test_a_positional_only_context_is_fine():
    def f(ctx: RunContext[Any], /, a: int) -> str: ...

    assert schema(f)["required"] == ["a"]
