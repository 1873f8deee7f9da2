"""A body that is being read: what is of the wrong kind is `Refused`, by the name of the parameter."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import Fields, entered

_ROOT = "body"


@contextmanager
def reading() -> Generator[None]:
    """Within this block a malformed document is `Refused`, with the parameter that is wrong."""
    try:
        yield
    except InvalidMessage as error:
        where = str(error.details.get("where", ""))
        param = where.removeprefix(_ROOT).removeprefix(".") or None
        message = error.message.removeprefix(f"{_ROOT}.")
        raise Refused(message, param=param, code="invalid_type") from error


def fields_of(body: object) -> Fields:
    """The body of a request.

    Raises:
        InvalidMessage: it is no JSON object.
    """
    return Fields(entered(body, _ROOT), _ROOT)


def required(fields: Fields, key: str) -> Any:
    """What stands under a key that must be there.

    Raises:
        Refused: nothing does.
    """
    value = fields.any(key)
    if value is None:
        name = fields.place(key).removeprefix(f"{_ROOT}.")
        raise Refused(f"Missing required parameter: {name!r}.", param=name, code="missing_required_parameter")
    return value


def required_text(fields: Fields, key: str) -> str:
    """Text that must be there, and not be empty.

    Raises:
        InvalidMessage: it is no text.
        Refused: there is none.
    """
    text = fields.text(key)
    return text or required(Fields({}, fields.where), key)


def param_of(fields: Fields, key: str) -> str:
    """The name of a parameter, as OpenAI has it."""
    return fields.place(key).removeprefix(f"{_ROOT}.")


def place(where: str) -> str:
    """The name of a parameter by its place."""
    return where.removeprefix(f"{_ROOT}.")


def refuse_these(fields: Fields, impossible: dict[str, str]) -> None:
    """Refuse fields that ask for what cannot be done; null, false, and what is empty ask for nothing.

    Raises:
        Refused: one does.
    """
    for key, why in impossible.items():
        if fields.any(key):
            raise unsupported(param_of(fields, key), why)
