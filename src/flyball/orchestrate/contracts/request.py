"""SystemRequest: what an adapter asks of the system."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from flyball.core.errors import InvalidRequest, SchemaMalformed, SchemaRequired
from flyball.core.forms.fields import Fields, entered, filled, written
from flyball.core.messages import JSON, Message
from flyball.core.schema import check_schema
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.orchestrate.contracts.conversation import conversation, read_conversation, write_conversation
from flyball.orchestrate.contracts.reading import inner, names, one_of, reading
from flyball.orchestrate.contracts.tools import (
    check_caller_tools,
    read_caller_tool,
    read_choice,
    write_caller_tool,
    write_choice,
)
from flyball.orchestrate.lifecycle import Mode

_FIELD = re.compile(r"`\$\.?(.*?)`$")


class ExecutionHints(Struct, frozen=True, omit_defaults=True):
    """How to run a request, passed through untouched. None is unset: the engine's own default holds.

    `timeout` is for the whole request, in seconds. A temperature of 0.0 asks for determinism; 0 in the other
    numbers means unset, as pagantic has it. `options` goes to the engine as it is.
    """

    max_tokens: int | None = None
    timeout: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: str | None = None
    options: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    def settings(self) -> ModelSettings:
        """The hints that are for the model."""
        return ModelSettings(
            max_tokens=self.max_tokens or None,
            temperature=self.temperature,
            top_p=self.top_p or None,
            seed=self.seed,
            stop=self.stop,
            reasoning_effort=self.reasoning_effort or None,
            options=self.options or None,
        )

    def check(self) -> ExecutionHints:
        """Return the hints if they can be followed.

        Raises:
            InvalidRequest: a number is none that it can be; the message names the field.
        """
        for name, highest in _HIGHEST.items():
            value = getattr(self, name)
            if value is not None and not _is_between(value, highest):
                limit = f" and at most {highest:g}" if math.isfinite(highest) else ""
                field = f"hints.{name}"
                number = isinstance(value, int | float) and not isinstance(value, bool)
                wanted = f"at least 0{limit}" if number else "a number"
                raise InvalidRequest(f"{field} should be {wanted}, but is {value!r:.100}", field=field)
        return self

    def to_json(self) -> dict[str, JSON]:
        """As JSON, without what is unset."""
        known = {key: value for key, value in asdict(self).items() if key != "extra" and value not in _UNSET}
        if self.stop:
            known["stop"] = list(self.stop)
        return written(known, self.extra, _HINTS)

    @staticmethod
    def read(fields: Fields) -> ExecutionHints:
        """From JSON, where 0 is unset but for the temperature."""
        return ExecutionHints(
            max_tokens=fields.whole("max_tokens") or None,
            timeout=fields.number("timeout") or None,
            temperature=fields.number("temperature"),
            top_p=fields.number("top_p") or None,
            seed=fields.whole("seed"),
            stop=names(fields, "stop"),
            reasoning_effort=fields.text("reasoning_effort") or None,
            options=fields.mapping("options"),
            extra=fields.rest(),
        )


def _is_between(value: Any, highest: float) -> bool:
    """Whether a value is a number from 0 on that a machine can count with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= min(highest, _MOST)  # and so neither infinite nor NaN


_UNSET = (None, ())
_MOST = 2.0**53
_HIGHEST = {"max_tokens": math.inf, "timeout": math.inf, "temperature": math.inf, "top_p": 1.0}
_HINTS = frozenset(ExecutionHints.__struct_fields__) - {"extra"}


class OutputContract(Struct, frozen=True, omit_defaults=True):
    """What the answer must look like.

    `schema` is a JSON Schema: the answer is parsed and held to it. `grammar` is the text of a GBNF grammar,
    which the decoder is held to. With `repair_allowed` what is structurally wrong is put right or asked for
    again; without, it is the end. With `strict_validation` any violation is the end, and nothing partial is
    given back; without, the model is asked again, and a response that failed all the same still holds what
    came last.
    """

    schema: dict[str, Any] | None = None
    grammar: str | None = None
    repair_allowed: bool = True
    strict_validation: bool = False
    extra: dict[str, Any] | None = None

    def check(self) -> OutputContract:
        """Return the contract if it can be kept.

        Raises:
            SchemaMalformed: the schema is no JSON Schema.
            GrammarMalformed: the grammar is none.
        """
        if self.schema is not None:
            try:
                check_schema(self.schema)
            except SchemaMalformed as error:
                raise SchemaMalformed(f"output.{error.message}", field="output.schema") from error
        if self.grammar:
            from flyball.constraint.grammar import check_grammar

            check_grammar(self.grammar)
        return self

    def to_json(self) -> dict[str, JSON]:
        """As JSON."""
        known: dict[str, JSON] = {
            "schema": self.schema,
            "grammar": self.grammar,
            "repair_allowed": self.repair_allowed,
            "strict_validation": self.strict_validation,
        }
        return written(known, self.extra, _OUTPUT)

    @staticmethod
    def read(fields: Fields) -> OutputContract:
        """From JSON. An empty grammar is none; a flag that is missing has the default that it has here."""
        schema, repair, strict = (
            fields.any("schema"),
            fields.flag("repair_allowed"),
            fields.flag("strict_validation"),
        )
        return OutputContract(
            schema=None if schema is None else Fields(schema, fields.place("schema")).rest() or {},
            grammar=fields.text("grammar") or None,
            repair_allowed=repair is not False,
            strict_validation=strict is True,
            extra=fields.rest(),
        )


_OUTPUT = frozenset(OutputContract.__struct_fields__) - {"extra"}


class SystemRequest(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request to the system. Ids that are empty are filled in at the boundary; others go on as they are.

    `trace_id` and `span_id` are the caller's, by W3C's rules: what is done stands under that span.
    `session_id` names the conversation that the request belongs to, if it belongs to one. `tools` are the
    names of the tools that it may use; none means all. `caller_tools` are tools besides these that whoever
    asks runs: a response that has calls of them in `calls_wanted` is gone on with by `System.answer`.
    `tool_choice` is how free the model is to call either. `metadata` is handed to every tool call. `plan` is
    the plan of a request in mode plan, as JSON (`flyball.orchestrate.plan.forms`): then no planner is asked.
    """

    request_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    span_id: str = ""
    messages: tuple[Message, ...]
    mode: Mode = Mode.CHAT
    hints: ExecutionHints = ExecutionHints()
    output: OutputContract | None = None
    tools: tuple[str, ...] = ()
    caller_tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice | None = None
    metadata: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    def check(self) -> SystemRequest:
        """Return the request, its values of the types that they should be, if the system can serve it.

        Raises:
            InvalidRequest: a field is missing, of the wrong type, or contradicts another; `field` names it.
            SchemaRequired: the mode needs a schema and there is none.
            SchemaMalformed: the schema, or that of a tool's parameters, is no JSON Schema.
            GrammarMalformed: the grammar is none.
        """
        if not isinstance(self.hints, ExecutionHints):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise InvalidRequest(f"hints should be ExecutionHints, but is {self.hints!r:.100}", field="hints")
        self.hints.check()
        request = _typed(self)
        conversation(request.messages)
        if request.output is not None:
            request.output.check()
        if not all(request.tools):
            raise InvalidRequest("tools holds an empty name: leave it out", field="tools")
        for name in ("caller_tools", "tool_choice"):
            if request.mode in (Mode.PLAN, Mode.REDUNDANT) and getattr(request, name):
                raise InvalidRequest(f"{name} is for the modes chat and structured", field=name)
        check_caller_tools(request.caller_tools)
        if request.plan is not None and request.mode is not Mode.PLAN:
            raise InvalidRequest(
                f"a plan is for the mode plan, and the mode is {request.mode!s}: leave one of them out",
                field="plan",
            )
        needs_schema = request.mode in (Mode.STRUCTURED, Mode.REDUNDANT)
        if needs_schema and (request.output is None or request.output.schema is None):
            raise SchemaRequired(
                f"the mode {request.mode!s} needs a JSON Schema in output.schema, and there is none",
                field="output.schema",
                mode=request.mode,
            )
        return request

    def to_json(self) -> dict[str, JSON]:
        """As JSON: `from_json` gives the same request back."""
        known: dict[str, JSON] = {
            "request_id": self.request_id,
            "session_id": self.session_id,
            "trace_id": self.trace_id,
            "messages": write_conversation(self.messages),
            "mode": str(self.mode),
        }
        output = None if self.output is None else self.output.to_json()
        known |= filled(
            span_id=self.span_id,
            hints=self.hints.to_json(),
            output=output,
            tools=list(self.tools),
            caller_tools=[write_caller_tool(tool) for tool in self.caller_tools],
            tool_choice=None if self.tool_choice is None else write_choice(self.tool_choice),
            metadata=self.metadata,
        )
        if self.plan is not None:
            known["plan"] = self.plan  # also an empty one: it is the request's own, and refused
        return written(known, self.extra, _REQUEST)

    @classmethod
    def from_json(cls, document: object) -> SystemRequest:
        """A request from JSON (a dict). What it asks for is looked at by `check`.

        Raises:
            InvalidRequest: it is malformed; `field` names what is wrong.
        """
        with reading():
            fields = Fields(entered(document, "request"), "request")
            return cls(
                request_id=fields.text("request_id"),
                session_id=fields.text("session_id"),
                trace_id=fields.text("trace_id"),
                span_id=fields.text("span_id"),
                messages=read_conversation(fields.any("messages"), fields.place("messages")),
                mode=one_of(fields, "mode", Mode, Mode, Mode.CHAT),
                hints=inner(fields, "hints", ExecutionHints.read) or ExecutionHints(),
                output=inner(fields, "output", OutputContract.read),
                tools=names(fields, "tools"),
                caller_tools=tuple([read_caller_tool(*item) for item in fields.items("caller_tools")]),
                tool_choice=inner(fields, "tool_choice", read_choice),
                metadata=fields.mapping("metadata"),
                plan=_plan(fields),
                extra=fields.rest(),
            )


def _plan(fields: Fields) -> dict[str, Any] | None:
    """The plan as it is: also an empty one is the request's own."""
    plan = fields.any("plan")
    return None if plan is None else Fields(plan, fields.place("plan")).rest() or {}


_REQUEST = frozenset(SystemRequest.__struct_fields__) - {"extra"}


def _typed(request: SystemRequest) -> SystemRequest:
    """The request as it would come out of a wire: nobody checked the types of what Python was given."""
    for name in SystemRequest.__struct_fields__:
        try:
            msgspec.json.encode(getattr(request, name))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"{name} cannot be written as JSON: {error}", field=name) from error
    try:
        return msgspec.json.decode(msgspec.json.encode(request), type=SystemRequest)
    except msgspec.DecodeError as error:
        place = _FIELD.search(str(error))
        field = place.group(1) if place is not None else ""
        raise InvalidRequest(f"the request is malformed: {error}", field=field) from error
