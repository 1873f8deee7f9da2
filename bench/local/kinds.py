"""The kinds of constrained generation that are measured; each writes a hundred tokens or more."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.constraint.protocol import HermesProtocol
from flyball.core.messages import Message, Role, Text, system, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.inference.request import OutputObject, Request

TOKENS = 160
"""How many tokens a generation has at most."""
SETTINGS = ModelSettings(temperature=0.0, seed=0, max_tokens=TOKENS)

_PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "first and last name", "maxLength": 40},
        "born": {"type": "string", "format": "date", "description": "date of birth"},
        "email": {"type": "string", "pattern": "^[a-z]+\\.[a-z]+@example\\.com$"},
        "role": {"enum": ["engineer", "designer", "manager"]},
        "age": {"type": "integer", "minimum": 18, "maximum": 99},
        "active": {"type": "boolean"},
    },
    "required": ["name", "born", "email", "role", "age", "active"],
    "additionalProperties": False,
}
_PEOPLE: dict[str, Any] = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": _PERSON, "minItems": 6, "maxItems": 9}},
    "required": ["people"],
}
_TREE: dict[str, Any] = {
    "$defs": {
        "part": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "maxItems": 5},
            },
            "required": ["name", "parts"],
        }
    },
    "$ref": "#/$defs/part",
}
_MAIL = ToolDefinition(
    "send_mail",
    {
        "type": "object",
        "properties": {"to": {"type": "string"}, "subject": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "subject", "text"],
    },
    "Send a mail.",
)


_LINES = """root ::= line{8,40}
line ::= word (" " word){2,9} [.,;!] "\\n"
word ::= [a-zA-Z']{1,14}
"""


class Kind(Struct, frozen=True):
    """One kind: its name, what it is, and the request that has a grammar."""

    name: str
    what: str
    constrained: Request

    @property
    def free(self) -> Request:
        """The same prompt without a grammar, held to as many tokens: it may not end before."""
        rendered = HermesProtocol().render(self.constrained)
        messages = tuple(Message(Role(m["role"]), (Text(m["content"]),)) for m in rendered.messages)
        return Request(messages, settings=replace(SETTINGS, options={"ignore_eos": True}))


KINDS = (
    Kind(
        "list",
        "a list of objects: dates, patterns, bounds",
        Request(
            (system("Invent people."), user("Seven people who work together.")),
            settings=SETTINGS,
            output=OutputObject(_PEOPLE),
        ),
    ),
    Kind(
        "recursive",
        "a tree of parts within parts",
        Request(
            (system("Name the parts of things."), user("A bicycle, with all its parts and their parts.")),
            settings=SETTINGS,
            output=OutputObject(_TREE),
        ),
    ),
    Kind(
        "call",
        "tool calls with long arguments",
        Request(
            (system("You help."), user("Tell Ann, Ben and Cleo by mail why we move the office to Bergen.")),
            (_MAIL,),
            SETTINGS,
            ToolChoice("required"),
        ),
    ),
    Kind(
        "lines",
        "a user's own grammar: lines of words",
        Request(
            (system("You write poems."), user("A long poem about the sea.")),
            settings=SETTINGS,
            grammar=_LINES,
        ),
    ),
)
