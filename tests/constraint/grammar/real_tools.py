"""Parameters of tools as they are met in the wild, each with arguments that follow them.

They are written as their servers write them: by hand, by zod, by pydantic; with defaults, descriptions and
titles.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

Tool = tuple[dict[str, Any], list[dict[str, Any]]]

HAND_MADE: dict[str, Tool] = {
    "github_create_issue": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "owner": {"type": "string", "description": "Repository owner"},
                "repo": {"type": "string", "description": "Repository name", "pattern": "^[\\w.-]{1,100}$"},
                "title": {"type": "string", "minLength": 1, "maxLength": 256},
                "body": {"type": "string"},
                "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
                "milestone": {"type": "integer", "minimum": 1},
                "assignees": {
                    "type": "array",
                    "items": {"type": "string", "pattern": "^[a-zA-Z0-9-]{1,39}$"},
                },
            },
            "required": ["owner", "repo", "title"],
            "additionalProperties": False,
        },
        [
            {"owner": "octo", "repo": "hello.world-1", "title": 'It "breaks"', "body": "a\nb\tc\\d"},
            {
                "owner": "o",
                "repo": "r",
                "title": "t",
                "labels": [],
                "milestone": 3,
                "assignees": ["a-b", "c"],
            },
        ],
    ),
    "github_list_pull_requests": (
        {
            "type": "object",
            "properties": {
                "owner": {"type": "string"},
                "repo": {"type": "string"},
                "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                "sort": {"enum": ["created", "updated", "popularity", "long-running"]},
                "direction": {"enum": ["asc", "desc"]},
                "per_page": {"type": "number", "minimum": 1, "maximum": 100},
                "page": {"type": "number"},
            },
            "required": ["owner", "repo"],
        },
        [{"owner": "a", "repo": "b", "state": "all", "per_page": 100, "page": 2}, {"owner": "", "repo": ""}],
    ),
    "filesystem_edit_file": (
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {
                                "type": "string",
                                "description": "Text to search for - must match exactly",
                            },
                            "newText": {"type": "string", "description": "Text to replace with"},
                        },
                        "required": ["oldText", "newText"],
                        "additionalProperties": False,
                    },
                },
                "dryRun": {"type": "boolean", "default": False},
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        [
            {"path": "/a/b.py", "edits": [{"oldText": "x", "newText": ""}], "dryRun": True},
            {"path": "", "edits": []},
        ],
    ),
    "filesystem_read_multiple_files": (
        {
            "type": "object",
            "properties": {"paths": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
            "required": ["paths"],
        },
        [{"paths": ["/etc/hosts", "C:\\x"]}],
    ),
    "sql_query": (
        {
            "type": "object",
            "properties": {
                "sql": {"type": "string", "maxLength": 10000},
                "params": {
                    "type": "array",
                    "items": {"type": ["string", "number", "boolean", "null"]},
                    "default": [],
                },
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
                "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 60},
            },
            "required": ["sql"],
        },
        [
            {
                "sql": "SELECT * FROM t WHERE a = ? AND b < 'x'",
                "params": ["é", -1.5, None, True],
                "timeout": 0.25,
            }
        ],
    ),
    "calendar_create_event": (
        {
            "type": "object",
            "properties": {
                "summary": {"type": "string", "minLength": 1},
                "start": {"type": "string", "format": "date-time"},
                "end": {"type": "string", "format": "date-time"},
                "attendees": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "email": {"type": "string", "format": "email"},
                            "optional": {"type": "boolean"},
                        },
                        "required": ["email"],
                    },
                },
                "reminders": {"type": "array", "items": {"enum": [0, 5, 10, 30, 60, 1440]}, "maxItems": 5},
                "recurrence": {
                    "type": "string",
                    "pattern": "^RRULE:FREQ=(DAILY|WEEKLY|MONTHLY)(;COUNT=\\d+)?$",
                },
            },
            "required": ["summary", "start", "end"],
        },
        [
            {
                "summary": "Lunch",
                "start": "2024-02-29T12:00:00Z",
                "end": "2024-02-29T13:30:00.5+01:00",
                "attendees": [{"email": "ada.l@example.com", "optional": True}, {"email": "b+c@d-e.org"}],
                "reminders": [10, 1440],
                "recurrence": "RRULE:FREQ=WEEKLY;COUNT=10",
            }
        ],
    ),
    "weather_forecast": (
        {
            "type": "object",
            "properties": {
                "latitude": {"type": "number", "minimum": -90, "maximum": 90},
                "longitude": {"type": "number", "minimum": -180, "maximum": 180},
                "days": {"type": "integer", "minimum": 1, "maximum": 16},
                "units": {"type": "string", "enum": ["metric", "imperial"]},
                "hourly": {"type": "array", "items": {"enum": ["temperature_2m", "rain", "wind_speed_10m"]}},
            },
            "required": ["latitude", "longitude"],
        },
        [
            {"latitude": 48.8566, "longitude": 2.3522, "days": 16, "units": "metric"},
            {"latitude": -90, "longitude": -179.99999, "hourly": ["rain"]},
        ],
    ),
    "send_email": (
        {
            "type": "object",
            "properties": {
                "to": {
                    "anyOf": [
                        {"type": "string", "format": "email"},
                        {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1},
                    ]
                },
                "subject": {"type": "string", "maxLength": 998},
                "body": {"type": "string"},
                "attachments": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"uri": {"type": "string", "format": "uri"}}},
                },
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["to", "subject", "body"],
        },
        [
            {
                "to": ["a@b.co"],
                "subject": "Hi",
                "body": "😀",
                "attachments": [{"uri": "https://x.org/a?b=c%20d#e"}],
                "headers": {"X-Id": "1", "": ""},
            },
            {"to": "a.b@c-d.example", "subject": "", "body": "", "attachments": [{}]},
        ],
    ),
    "browser_click": (
        {
            "type": "object",
            "properties": {
                "element": {"type": "string"},
                "ref": {"type": "string"},
                "button": {"type": "string", "enum": ["left", "right", "middle"]},
                "modifiers": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]},
                },
                "position": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
                    "required": ["x", "y"],
                    "additionalProperties": False,
                },
            },
            "required": ["element", "ref"],
            "additionalProperties": False,
        },
        [{"element": "OK", "ref": "e12", "modifiers": ["Alt"], "position": {"x": -0.5, "y": 1024}}],
    ),
    "create_payment": (
        {
            "type": "object",
            "properties": {
                "amount": {"type": "integer", "minimum": 50, "maximum": 99999999},
                "currency": {"type": "string", "pattern": "^[a-z]{3}$"},
                "tip": {"type": "number", "minimum": 0, "multipleOf": 0.01},
                "method": {
                    "oneOf": [
                        {
                            "type": "object",
                            "properties": {
                                "type": {"const": "card"},
                                "number": {"type": "string", "pattern": "^\\d{13,19}$"},
                                "cvc": {
                                    "type": "string",
                                    "minLength": 3,
                                    "maxLength": 4,
                                    "pattern": "^[0-9]+$",
                                },
                            },
                            "required": ["type", "number"],
                        },
                        {
                            "type": "object",
                            "properties": {
                                "type": {"const": "iban"},
                                "iban": {"type": "string", "maxLength": 34},
                            },
                            "required": ["type", "iban"],
                        },
                    ]
                },
                "metadata": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 500}},
                "idempotency_key": {"type": "string", "format": "uuid"},
            },
            "required": ["amount", "currency", "method"],
        },
        [
            {
                "amount": 50,
                "currency": "eur",
                "tip": 1.5,
                "method": {"type": "card", "number": "4242424242424242", "cvc": "123"},
                "idempotency_key": "123e4567-e89b-12d3-a456-426614174000",
            },
            {
                "amount": 99999999,
                "currency": "usd",
                "method": {"type": "iban", "iban": "DE00"},
                "metadata": {"k": ""},
            },
        ],
    ),
    "slack_post_message": (
        {
            "type": "object",
            "properties": {
                "channel": {"type": "string", "pattern": "^[CDG][A-Z0-9]{8,10}$"},
                "text": {"type": "string"},
                "thread_ts": {"type": "string", "pattern": "^\\d{10}\\.\\d{6}$"},
                "blocks": {"type": "array", "items": {}},
            },
            "required": ["channel", "text"],
        },
        [
            {
                "channel": "C0123456789",
                "text": "hi",
                "thread_ts": "1700000000.000100",
                "blocks": [{"a": [1, None]}],
            },
        ],
    ),
    "kubernetes_scale": (
        {
            "type": "object",
            "properties": {
                "namespace": {
                    "type": "string",
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
                    "maxLength": 63,
                },
                "kind": {"enum": ["Deployment", "StatefulSet", "ReplicaSet"]},
                "name": {"type": "string", "format": "hostname"},
                "replicas": {"type": "integer", "minimum": 0, "maximum": 500},
                "labels": {
                    "type": "object",
                    "patternProperties": {"^[a-z]+(/[a-z]+)?$": {"type": "string"}},
                    "additionalProperties": False,
                },
            },
            "required": ["kind", "name", "replicas"],
        },
        [
            {
                "namespace": "kube-system",
                "kind": "Deployment",
                "name": "web-1.x",
                "replicas": 0,
                "labels": {"app/x": "y"},
            },
            {"kind": "ReplicaSet", "name": "a", "replicas": 500},
        ],
    ),
    "query_filter": (
        {
            "type": "object",
            "properties": {"where": {"$ref": "#/$defs/filter"}},
            "required": ["where"],
            "$defs": {
                "filter": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}}},
                            "required": ["and"],
                            "additionalProperties": False,
                        },
                        {
                            "type": "object",
                            "properties": {
                                "field": {"type": "string"},
                                "op": {"enum": ["=", "!=", "<", ">"]},
                                "value": {"type": ["string", "number", "null"]},
                            },
                            "required": ["field", "op", "value"],
                            "additionalProperties": False,
                        },
                    ]
                }
            },
        },
        [
            {"where": {"field": "a", "op": "!=", "value": None}},
            {"where": {"and": [{"field": "a", "op": "<", "value": 1}, {"and": []}]}},
        ],
    ),
    "move_robot": (
        {
            "type": "object",
            "properties": {
                "target": {
                    "type": "array",
                    "prefixItems": [{"type": "number"}, {"type": "number"}, {"type": "number"}],
                    "items": False,
                    "minItems": 3,
                },
                "speed": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.5},
                "grip": {"type": "integer", "minimum": -5, "maximum": 5},
                "duration": {"type": "string", "format": "duration"},
            },
            "required": ["target"],
        },
        [{"target": [0, -1.25, 3], "speed": 1.4999, "grip": -5, "duration": "PT1H30M"}],
    ),
    "get_time": ({"type": "object", "properties": {}}, [{}]),
}


class Priority(StrEnum):
    LOW = "low"
    HIGH = "high"


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    email: str | None = None
    manager: Person | None = None


class Text(BaseModel):
    kind: Literal["text"] = "text"
    text: str


class Image(BaseModel):
    kind: Literal["image"] = "image"
    url: Annotated[str, Field(pattern=r"^https://\S+$", max_length=40)]
    size: tuple[int, int] | None = None


class Ticket(BaseModel):
    """A ticket of a help desk."""

    title: str
    priority: Priority = Priority.LOW
    owner: Person
    watchers: list[Person] = Field(default=[], max_length=3)
    content: list[Annotated[Text | Image, Field(discriminator="kind")]]
    grid: list[list[Annotated[int, Field(ge=0, lt=10)]]] = []
    extra: dict[str, int | str] = Field(default_factory=dict)
    score: Annotated[float, Field(gt=0, le=1)] | None = None


PYDANTIC_MADE: dict[str, Tool] = {
    "ticket": (
        TypeAdapter(Ticket).json_schema(),
        [
            {
                "title": "x",
                "priority": "high",
                "owner": {"name": "A", "email": None, "manager": {"name": "B"}},
                "watchers": [{"name": "C"}],
                "content": [
                    {"kind": "text", "text": ""},
                    {"kind": "image", "url": "https://x.org/é", "size": [1, 2]},
                ],
                "grid": [[], [0, 9]],
                "extra": {"a": 1, "b": "c"},
                "score": 0.5,
            },
            {"title": "", "owner": {"name": "A"}, "content": []},
        ],
    ),
    "optional_list": (
        TypeAdapter(dict[str, list[Priority | None]]).json_schema(),
        [{}, {"a": ["low", None], "b": []}],
    ),
}

TOOLS = HAND_MADE | PYDANTIC_MADE
