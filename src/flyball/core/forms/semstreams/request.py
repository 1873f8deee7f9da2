"""AgentRequest and ModelConfig: what the loop asks of a model, and how.

A temperature of 0 is written into a request, though Go leaves it out: to Go it is unset either way, and
flyball reads back that it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from flyball.core.errors import InvalidRequest
from flyball.core.forms.fields import Fields, decoded, entered, filled, written
from flyball.core.forms.semstreams.messages import messages_from, write_messages
from flyball.core.forms.semstreams.tools import (
    choice_from,
    definition_from,
    write_tool_choice,
    write_tool_definition,
)
from flyball.core.forms.semstreams.types import Category, PayloadType
from flyball.core.forms.semstreams.validation import validate_tool_choice
from flyball.core.messages import JSON, Message
from flyball.core.settings import SEMSTREAMS, ModelSettings
from flyball.core.task import AgentRole
from flyball.core.tools import ToolChoice, ToolDefinition

_REQUEST = frozenset(
    {
        "request_id",
        "loop_id",
        "role",
        "messages",
        "model",
        "max_tokens",
        "temperature",
        "tools",
        "tool_choice",
    }
)
_CONFIG = frozenset({"temperature", "max_tokens"})
_UNSET = ModelSettings()


class ModelConfig(Struct, frozen=True):
    """How a model is set up; 0 is unset."""

    temperature: float = 0.0
    max_tokens: int = 0
    extra: dict[str, Any] | None = None

    @classmethod
    def read(cls, document: object) -> ModelConfig:
        """The config from JSON.

        Raises:
            InvalidMessage: it is malformed.
        """
        fields = Fields(entered(document, "model_config"), "model_config")
        temperature, tokens = fields.number("temperature") or 0.0, fields.whole("max_tokens") or 0
        return cls(temperature, tokens, fields.rest())

    def write(self) -> dict[str, JSON]:
        """The config as JSON."""
        known = filled(temperature=self.temperature, max_tokens=self.max_tokens)
        return written(known, self.extra, _CONFIG)

    def with_defaults(self) -> ModelConfig:
        """A copy with 0.2 and 4096 where nothing is set."""
        return replace(
            self,
            temperature=self.temperature or SEMSTREAMS.temperature,
            max_tokens=self.max_tokens or SEMSTREAMS.max_tokens,
        )

    @property
    def settings(self) -> ModelSettings:
        """The same as our settings."""
        return ModelSettings(max_tokens=self.max_tokens or None, temperature=self.temperature or None)


class AgentRequest(Struct, frozen=True):
    """What the loop asks of a model. `role` is the agent's, an `AgentRole` if it is valid."""

    request_id: str
    messages: tuple[Message, ...]
    loop_id: str = ""
    role: str = AgentRole.GENERAL
    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice | None = None
    extra: dict[str, Any] | None = None

    @property
    def schema(self) -> PayloadType:
        """The payload's type."""
        return PayloadType(Category.REQUEST)

    @property
    def settings(self) -> ModelSettings:
        """How the model is asked to answer; no tokens at all are unset tokens."""
        return ModelSettings(max_tokens=self.max_tokens or None, temperature=self.temperature)

    @classmethod
    def of(
        cls,
        request_id: str,
        messages: Iterable[Message],
        settings: ModelSettings = _UNSET,
        tools: Iterable[ToolDefinition] = (),
        tool_choice: ToolChoice | None = None,
        *,
        loop_id: str = "",
        role: str = AgentRole.GENERAL,
        model: str = "",
    ) -> AgentRequest:
        """A request in our words. Of the settings it has places for max_tokens and the temperature."""
        return cls(
            request_id,
            tuple(messages),
            loop_id,
            role,
            model,
            settings.max_tokens,
            settings.effective_temperature,
            tuple(tools),
            tool_choice,
        )

    @classmethod
    def read(cls, document: object) -> AgentRequest:
        """The request from JSON.

        Raises:
            InvalidMessage: it is malformed. What is merely missing is said by `validate`.
        """
        return cls.from_json(entered(document, "request"), "request")

    @classmethod
    def from_json(cls, value: JSON, where: str) -> AgentRequest:
        """The request out of a document that was entered already; raises as `read` does."""
        fields = Fields(value, where)
        choice = fields.any("tool_choice")
        return cls(
            request_id=fields.text("request_id"),
            loop_id=fields.text("loop_id"),
            role=fields.text("role"),
            messages=messages_from(fields.any("messages"), fields.place("messages")),
            model=fields.text("model"),
            max_tokens=fields.whole("max_tokens"),
            temperature=fields.number("temperature"),
            tools=tuple([definition_from(*item) for item in fields.items("tools")]),
            tool_choice=None if choice is None else choice_from(choice, fields.place("tool_choice")),
            extra=fields.rest(),
        )

    def write(self) -> dict[str, JSON]:
        """The request as JSON.

        Raises:
            InvalidMessage: a message has content that the form cannot hold.
        """
        known: dict[str, JSON] = {
            "request_id": self.request_id,
            "loop_id": self.loop_id,
            "role": str(self.role),
            "messages": write_messages(self.messages),
            "model": self.model,
        }
        if self.max_tokens is not None:
            known["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            known["temperature"] = self.temperature
        known |= filled(tools=[write_tool_definition(tool) for tool in self.tools])
        if self.tool_choice is not None:
            known["tool_choice"] = write_tool_choice(self.tool_choice)
        return written(known, self.extra, _REQUEST)

    @classmethod
    def unmarshal_json(cls, data: bytes | str) -> AgentRequest:
        """The request from bytes; raises as `read` does."""
        return cls.from_json(decoded(data, "request"), "request")

    def marshal_json(self) -> bytes:
        """The request as bytes; raises as `write` does."""
        return json.encode(self.write())

    def validate(self) -> None:
        """Check that the request can be answered.

        Raises:
            InvalidRequest: there is no request_id, no message, no such role, or a tool choice without a name.
        """
        if not self.request_id:
            raise InvalidRequest("request_id required", field="request_id")
        if not self.messages:
            raise InvalidRequest("messages cannot be empty", field="messages")
        if self.role not in list(AgentRole):
            roles = ", ".join(AgentRole)
            raise InvalidRequest(f"invalid role: {self.role} (must be one of: {roles})", field="role")
        if self.tool_choice is not None:
            validate_tool_choice(self.tool_choice)
