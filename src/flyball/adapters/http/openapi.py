"""The OpenAPI document (3.1): made of the table of operations, and of the structs that they read and give.

The schemas are msgspec's own of these structs, so that what is described is what is read and written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from flyball.adapters.http import frames
from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import MEDIA_TYPE, Problem
from flyball.orchestrate.contracts import SystemRequest

_TEMPLATE = "#/components/schemas/{name}"
_PLACE = re.compile(r"\{(\w+)\}")
_ALL = (400, 422, 429, 500, 503)
"""The problems that any operation may have, besides those of tokens."""
_WITH_BODY = (408, 413, 415)
_EVENT = {
    "description": "Each event of the stream: its data is a document, as JSON in one line",
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}, "id": {"type": "string"}},
    "required": ["data"],
}
_TAGS = {
    "requests": "Requests to agents: at once, in pieces, or in their own time",
    "loops": "Loops: what is recorded of them, what happens in them, what is said to them",
    "agents": "The agents, their models and what was used",
    "openai": "OpenAI's protocol",
    "server": "The server itself",
}


class PlainCall(Struct, frozen=True):
    """A tool call of a plain message."""

    name: str
    id: str = ""
    arguments: dict[str, Any] | None = None


class PlainMessage(Struct, frozen=True):
    """A message in its plain form: one text, and an assistant's calls. With `parts` it is a `Message`."""

    role: str
    content: str = ""
    tool_calls: tuple[PlainCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""


def document(operations: Sequence[Operation], *, version: str, tokens: bool) -> bytes:
    """The document, as JSON."""
    return msgspec.json.encode(described(operations, version=version, tokens=tokens))


def described(operations: Sequence[Operation], *, version: str, tokens: bool) -> dict[str, Any]:
    """The document. With `tokens`, a token is asked for."""
    types = _types(operations)
    schemas, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    known = {_key(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    request = components.get(SystemRequest.__name__)
    if request is not None:
        _, plain = msgspec.json.schema_components([PlainMessage], ref_template=_TEMPLATE)
        components |= plain
        messages = request["properties"]["messages"]
        messages["minItems"] = 1
        messages["items"] = {"anyOf": [{"$ref": _TEMPLATE.format(name="PlainMessage")}, messages["items"]]}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, known, tokens=tokens
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "flyball",
            "version": version,
            "description": "Agents with deterministic control around probabilistic inference.",
        },
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if tokens else {},
        },
    }


def _types(operations: Sequence[Operation]) -> list[Any]:
    """All types that have a schema, each once."""
    found: dict[str, Any] = {_key(Problem): Problem}
    for operation in operations:
        given = [kind for kinds in operation.gives.values() for kind in _each(kinds)]
        for kind in [operation.body, operation.fault, *given]:
            if kind is not None:
                found[_key(kind)] = kind
    return list(found.values())


def _each(kinds: Any) -> list[Any]:
    """The types of a document among what an answer may be."""
    some = cast("tuple[Any, ...]", kinds) if isinstance(kinds, tuple) else (kinds,)
    return [kind for kind in some if kind not in (None, Stream)]


def _key(kind: Any) -> str:
    return str(kind)


def _operation(operation: Operation, schemas: dict[str, Any], *, tokens: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": _responses(operation, schemas, tokens=tokens),
    }
    if operation.about:
        described["description"] = operation.about
    if parameters := _parameters(operation):
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": {"schema": schemas[_key(operation.body)]}},
        }
    if tokens and operation.scope is not None:
        described["security"] = [{"token": []}]
        described["x-scope"] = str(operation.scope)
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    places: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PLACE.findall(operation.path)
    ]
    if operation.query is not None:
        schema = msgspec.json.schema(operation.query)
        properties = schema["$defs"][operation.query.__name__]["properties"]
        places += [
            {"name": name, "in": "query", "required": False, "schema": about}
            for name, about in properties.items()
        ]
    if operation.gives.get(200) is Stream and operation.method == "GET":
        places.append(
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}}
        )
    return places


def _responses(operation: Operation, schemas: dict[str, Any], *, tokens: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in operation.gives.items():
        found[str(status)] = {"description": operation.summary, **_content(operation, kind, schemas)}
    problems = {*_ALL, *operation.problems, *(_WITH_BODY if operation.body is not None else ())}
    if operation.scope is None:
        problems = {400, 429, 500}
    elif tokens:
        problems |= {401, 403}
    else:
        problems.add(403)
    media_type, fault = MEDIA_TYPE, Problem
    if operation.fault is not None:
        media_type, fault = operation.media_type, operation.fault
    for status in sorted(problems - set(operation.gives)):
        found[str(status)] = {
            "description": "A problem",
            "content": {media_type: {"schema": schemas[_key(fault)]}},
        }
    return found


def _content(operation: Operation, kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for one in _each(kind):
        content[operation.media_type] = {"schema": schemas[_key(one)]}
    if kind is Stream or (isinstance(kind, tuple) and Stream in kind):
        content[frames.MEDIA_TYPE] = {"schema": _EVENT}
    return {"content": content} if content else {}


def openapi_operation(operations: Sequence[Operation], version: str, *, tokens: bool) -> Operation:
    """The operation that gives the document, of these operations and of itself.

    It is written when it is first asked for: that takes longer than all else that a server begins with.
    """
    listed = tuple(operations)  # as they are now: others may be added that are not described

    @cache
    def written() -> bytes:
        return document([*listed, own], version=version, tokens=tokens)

    async def read_openapi(asking: Asking) -> Answer:
        return Answer(written())

    own = Operation(
        "GET", "/openapi.json", "This document", read_openapi, gives={200: dict[str, Any]}, tag="server"
    )
    return own
