"""The form that an answer is to have: a contract, and what is done with an answer that breaks it."""

from __future__ import annotations

import re

from msgspec import Struct

from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.openai.reading import param_of, required_text
from flyball.core.forms.fields import Fields, malformed
from flyball.core.messages import JSON
from flyball.orchestrate.contracts import OutputContract

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Format(Struct, frozen=True):
    """The form that an answer is to have.

    `strict`: an answer that does not follow the schema, also after the model was asked again, is a failure.
    Without it, it is given as it is: whoever asked looks at it. `told` is the form as it was asked for.
    """

    contract: OutputContract | None = None
    strict: bool = False
    told: JSON = None


def read_format(value: JSON, where: str, *, nested: bool) -> Format:
    """`response_format`, or `text.format`; `nested`: the schema stands under `json_schema`.

    Raises:
        InvalidMessage: it is malformed.
        Refused: there is no schema.
    """
    if value is None:
        return Format()
    fields = Fields(value, where)
    kind = required_text(fields, "type")
    if kind == "text":
        return Format()
    if kind == "json_object":
        return Format(OutputContract({"type": "object"}), told={"type": "json_object"})
    if kind != "json_schema":
        raise malformed(fields.place("type"), "one of text, json_object, json_schema", kind)
    inner = Fields(fields.any("json_schema"), fields.place("json_schema")) if nested else fields
    name = required_text(inner, "name")
    if not _NAME.fullmatch(name):
        raise malformed(inner.place("name"), "1 to 64 letters, digits, _ and -", name)
    schema = inner.any("schema")
    if schema is None:
        raise Refused(
            f"Missing required parameter: {param_of(inner, 'schema')!r}.",
            param=param_of(inner, "schema"),
            code="missing_required_parameter",
        )
    contract = OutputContract(Fields(schema, inner.place("schema")).rest() or {})
    strict, description = inner.flag("strict") is True, inner.text("description")
    told = {"type": "json_schema", "name": name, "schema": contract.schema, "strict": strict}
    return Format(contract, strict, told | ({"description": description} if description else {}))
