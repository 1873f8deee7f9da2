"""Objects whose struct says which keys they have: how SemStreams' larger payloads are read and written.

A field has the name of its key, and its annotation says what stands there. A key that Go always writes is
marked; the others have `omitempty`, and are left out when they are empty:

    loop_id: Always[str] = ""       # Go: `json:"loop_id"`
    user_id: str = ""               # Go: `json:"user_id,omitempty"`

Reading is as lenient as Go is: a missing key is its zero value. What is missing is said by `validate`.
"""

from __future__ import annotations

from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct, json

from flyball.core.article import a
from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import Fields, decoded, entered, written
from flyball.core.forms.semstreams.kinds import SCALARS, Kind
from flyball.core.forms.semstreams.types import Category, PayloadType
from flyball.core.messages import JSON

T = TypeVar("T")
ALWAYS = "always"
Always: TypeAlias = Annotated[T, ALWAYS]
"""A key that is written also when it is empty."""


class Column(NamedTuple):
    """One key: what stands there, and whether it is written when empty."""

    key: str
    kind: Kind
    always: bool


class Keyed(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """An object with known keys. `extra` keeps the unknown ones, which are written back."""

    NAME: ClassVar[str]
    """What it is called in errors."""

    extra: dict[str, Any] | None = None

    @classmethod
    def read(cls, document: object) -> Self:
        """The object from JSON.

        Raises:
            InvalidMessage: a key holds something of another kind, or it is no JSON.
        """
        return cls.from_json(entered(document, cls.NAME), cls.NAME)

    @classmethod
    def from_json(cls, value: JSON, where: str) -> Self:
        """The object out of a document that was entered already; raises as `read` does."""
        fields = Fields(value, where)
        known = {column.key: column.kind.read(fields, column.key) for column in columns(cls)}
        return cls(**known, extra=fields.rest())

    def write(self) -> dict[str, JSON]:
        """The object as JSON.

        Raises:
            InvalidMessage: something in it has no place in the form (images in a message).
        """
        known: dict[str, JSON] = {}
        for key, kind, always in columns(type(self)):
            value = getattr(self, key)
            if always or kind.is_filled(value):
                known[key] = kind.write(value)
        return written(known, self.extra, _keys(type(self)))

    @classmethod
    def unmarshal_json(cls, data: bytes | str) -> Self:
        """The object from bytes; raises as `read` does."""
        return cls.from_json(decoded(data, cls.NAME), cls.NAME)

    def marshal_json(self) -> bytes:
        """The object as bytes; raises as `write` does."""
        return json.encode(self.write())

    def validate(self) -> None:
        """Check that what must be there is.

        Raises:
            InvalidMessage: it is not; the message names the field and its value, `field` in the details too.
        """

    def require(self, *fields: str) -> None:
        """Check that these fields are filled; raises as `validate` does."""
        for field in fields:
            if getattr(self, field) in ("", None):
                raise InvalidMessage(f"{field} required in {a(self.NAME)}, and it is empty", field=field)

    def require_one_of(self, field: str, values: tuple[str, ...]) -> None:
        """Check that a field has one of these values; raises as `validate` does."""
        value = getattr(self, field)
        if value not in values:
            raise InvalidMessage(
                f"{field} in {a(self.NAME)} must be one of: {', '.join(values)}; it is {value!r}", field=field
            )


class Payload(Keyed, frozen=True, kw_only=True):
    """An object that travels in an envelope; its name is the category of its type."""

    @property
    def schema(self) -> PayloadType:
        """The payload's type."""
        return PayloadType(Category(self.NAME))


@cache
def columns(struct: type[Keyed]) -> tuple[Column, ...]:
    """The keys of a struct, in their order."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(
        [
            Column(key, _kind(hints[key]), ALWAYS in get_args(hints[key])[1:])
            for key in struct.__struct_fields__
            if key != "extra"
        ]
    )


@cache
def _keys(struct: type[Keyed]) -> frozenset[str]:
    return frozenset([column.key for column in columns(struct)])


def _kind(hint: Any) -> Kind:
    """What an annotation says of its place: a kind beside it, a scalar, an object or several of them."""
    if get_origin(hint) is Annotated:
        plain, *beside = get_args(hint)
        told = [note for note in beside if isinstance(note, Kind)]
        return told[0] if told else _kind(plain)
    inner = [one for one in get_args(hint) if isinstance(one, type) and issubclass(one, Keyed)]
    if not inner:
        return SCALARS[hint]
    return _several(inner[0]) if get_origin(hint) is tuple else _one(inner[0])


def _one(struct: type[Keyed]) -> Kind:
    def read(fields: Fields, key: str) -> Keyed | None:
        value = fields.any(key)
        return None if value is None else struct.from_json(value, fields.place(key))

    return Kind(read, lambda value: value.write(), lambda value: value is not None)


def _several(struct: type[Keyed]) -> Kind:
    def read(fields: Fields, key: str) -> tuple[Keyed, ...]:
        return tuple([struct.from_json(*item) for item in fields.items(key)])

    return Kind(read, lambda values: [value.write() for value in values])
