"""How far a grammar lets a generation go where the schema sets no end itself."""

from __future__ import annotations

from msgspec import Struct

from flyball.core.errors import UserError


class Bounds(Struct, frozen=True):
    """Ends for what a schema leaves open, so that whatever a model writes under the grammar comes to an end.

    A limit of the schema's own is kept as it stands, however large; these apply only where there is none.

    - `max_string`: characters of a string, and repetitions of an open quantifier in a pattern
    - `max_key`: characters of a key that the schema does not name
    - `max_items`: items of an array; `max_properties`: keys that the schema does not name
    - `max_depth`: how often a reference may lead back into itself, and how deep a value of any kind may nest
    - `max_digits`: digits before the decimal point; `max_fraction`: digits after it
    - `undeclared`: whether an object that lists its properties, and says nothing of others, may have others.
      JSON Schema allows them; models that may invent keys do so, hence not by default.
    """

    max_string: int = 1_000
    max_key: int = 64
    max_items: int = 64
    max_properties: int = 32
    max_depth: int = 6
    max_digits: int = 15
    max_fraction: int = 12
    undeclared: bool = False

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "undeclared" and value < 1:
                raise UserError(f"Bounds.{name} is {value}: it has to be at least 1")
