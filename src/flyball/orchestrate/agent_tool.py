"""AgentTool: an agent as a tool of another agent.

Each call is a run of the agent, a child of the run that calls. What the child answers is the call's result,
and what it uses counts for its parent; it is cancelled and paused with it, and may take no longer. A call
that is run again after a crash finds its child and goes on with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, cast, overload

from msgspec.structs import replace
from typing_extensions import Unpack

from flyball.core.context import RunContext
from flyball.core.encodable import to_json
from flyball.core.errors import SchemaMalformed, UserError
from flyball.core.messages import Content
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.machine import fold
from flyball.orchestrate.outputs import reader_for
from flyball.orchestrate.runs import result_from
from flyball.tool.availability import asking
from flyball.tool.blueprint import Blueprint, blueprint_of
from flyball.tool.errors import CallContinues, ModelRetry
from flyball.tool.options import Availability, ToolPolicy, check_name, spec_from
from flyball.tool.protocol import Tool
from flyball.tool.schema import without_titles
from flyball.tool.wrapped import WrappedTool

if TYPE_CHECKING:
    from flyball.core.clock import Clock
    from flyball.core.events import Started
    from flyball.orchestrate.bindings import Bindings
    from flyball.tool.preparing import ToolPrepare
    from flyball.tool.validating import ResultValidator

ParamsT = TypeVar("ParamsT")


class Askable(Protocol):
    """What the tool needs of an agent."""

    config: Any
    """What it is made of: its `name` is the tool's, too."""

    @property
    def run(self) -> Callable[..., Awaitable[Any]]:
        """Runs it."""
        ...

    def bindings(self) -> Bindings:
        """The code behind it."""
        ...

    async def beginning(
        self, prompt: Content | None, options: Mapping[str, Any]
    ) -> tuple[Bindings, Started, Clock]:
        """What a loop of it begins with; nothing is recorded yet."""
        ...


class AgentToolOptions(TypedDict, total=False):
    """What may be said of an agent's tool besides; as for other tools, if nothing else is said here."""

    timeout: float | None
    """Seconds for each run of the agent: it ends with CANCELLED_TIMEOUT then, also after a restart."""
    approval: bool
    sequential: bool
    strict: bool | None
    retries: int | None
    available: Any
    prepare: ToolPrepare | None
    validators: list[ResultValidator] | tuple[ResultValidator, ...]


class AgentTool:
    """An agent as a tool. `agent.as_tool(...)` makes one.

    Its result is the agent's output, as JSON where it is no text. If the agent's run fails, the model reads
    why. Calls may be repeated, and may run beside each other; each is a run of its own.
    """

    __slots__ = ("_available", "_timeout", "agent", "prepare", "run", "spec", "validators", "wants_context")

    @overload
    def __init__(
        self,
        agent: Askable,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[AgentToolOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        agent: Askable,
        name: str | None = None,
        description: str | None = None,
        *,
        parameters: type[ParamsT],
        prompt: Callable[[ParamsT], Content | Awaitable[Content]],
        **options: Unpack[AgentToolOptions],
    ) -> None: ...
    def __init__(
        self,
        agent: Askable,
        name: str | None = None,
        description: str | None = None,
        *,
        parameters: Any = None,
        prompt: Callable[[Any], Any] | None = None,
        **options: Unpack[AgentToolOptions],
    ) -> None:
        """Make a tool of an agent.

        Args:
            agent: who is asked. Workers that have an agent with this tool have that agent too.
            name: the tool's; by default the agent's.
            description: what the model is told of it; by default the agent's own, or that it asks that agent.
            parameters: the type of the arguments: a pydantic model, a dataclass, a TypedDict; by default they
                are `{"prompt": "…"}`.
            prompt: makes the prompt of the arguments; it may be async.
            options: see `AgentToolOptions`.

        Raises:
            SchemaMalformed: the type of the arguments is none of an object.
            UserError: the name or an option cannot be, or only one of `parameters` and `prompt` is given.
        """
        if (parameters is None) != (prompt is None):
            raise UserError(
                "parameters= and prompt= go together: the arguments' type, and the function that makes the "
                "prompt of them; without both, the model writes the prompt"
            )
        if unknown := sorted(options.keys() - AgentToolOptions.__annotations__.keys()):
            known = ", ".join(AgentToolOptions.__annotations__)
            raise UserError(f"an agent's tool has no option {unknown[0]!r}; it has {known}")
        self.agent = agent
        policy = cast("ToolPolicy", {key: value for key, value in options.items() if key != "timeout"})
        self._timeout = _checked_timeout(options.get("timeout"))
        called = check_name(agent.config.name if name is None else name)
        own = agent.config.description or f"Ask the agent {agent.config.name!r}."
        described = own if description is None else description
        if prompt is None:
            blueprint = blueprint_of(self._ask, {"name": called, "description": described, **policy})  # pyright: ignore[reportArgumentType] - a policy is part of the options
            run = blueprint.run(self._ask)
        else:
            blueprint = _blueprint(called, described, parameters, policy)
            run = blueprint.run(self._with(prompt))
        self.spec = replace(blueprint.spec, begins_loop=True)
        self.run = run
        self.wants_context = True
        self.prepare = blueprint.prepare
        self.validators = blueprint.validators
        self._available = blueprint.available

    async def available(self, context: RunContext[Any]) -> Availability:
        """What the `available` option's function says; True without one."""
        return True if self._available is None else await self._available(context)

    def __repr__(self) -> str:
        return f"<AgentTool {self.spec.definition.name} of {self.agent.config.name!r}>"

    def _with(self, make: Callable[[Any], Any]) -> Callable[..., Any]:
        async def ask(context: RunContext[Any], given: Any) -> object:
            return await self._ask(context, await answer_of(make, given))

        return ask

    async def _ask(self, context: RunContext[Any], prompt: str) -> object:
        """Ask the agent.

        Args:
            context: the run's.
            prompt: What it is to do, with all that it must know for that.
        """
        if not prompt:
            raise ModelRetry("the prompt is empty: say what the agent is to do")
        options: dict[str, Any] = {"parent": context}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        home: Any = context.home  # pyright: ignore[reportUnknownMemberType]
        if home is not None and home.calls_again:
            return await self._begun(prompt, home.child_options()["runtime"], options)
        if context.deps is not None and (home is None or "runtime" not in home.child_options()):
            options["deps"] = context.deps  # in one process; workers bind their own
        return (await self.agent.run(prompt, **options)).output

    async def _begun(self, prompt: str, runtime: Any, options: dict[str, Any]) -> object:
        """Have the child begun, or find it; its output, if it is over.

        Raises:
            CallContinues: it is not.
        """
        # One that is over is known by its id: it is what was asked for, also if the agent is another by now.
        if known := options["parent"].facts.child:
            events, loop_id = await runtime.journal.read(known), known
        else:
            _, started, _ = await self.agent.beginning(prompt, {**options, "runtime": runtime})
            events, loop_id = await runtime.ask_for(started), started.loop_id
        state = fold(events, f"loop {loop_id}") if events else None
        if known and state is not None and state.parent_loop_id != options["parent"].facts.loop_id:
            raise UserError(f"loop {loop_id} is none that this call has begun: what it answered is not told")
        # That a known one is over is recorded above. Of another, its own end says so: until then what it used
        # may not be counted yet, and who ends it has this call run again.
        if state is None or state.outcome is None or not (known or state.at == "done"):
            raise CallContinues(loop_id)
        reader = reader_for(self.agent.config.output, state.spec.output)
        return result_from(state, reader, runtime.journal).output


def asked_by(tool: Tool) -> Askable | None:
    """The agent that a tool asks, whatever is put around it; None of any other tool."""
    inner: Any = tool
    while isinstance(inner, WrappedTool):
        inner = inner.inner
    return inner.agent if isinstance(inner, AgentTool) else None


def _blueprint(name: str, description: str, parameters: Any, policy: ToolPolicy) -> Blueprint:
    """What a tool is made of whose arguments are one object of the user's type."""
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(parameters)
        schema = to_json(without_titles(adapter.json_schema()), "schema")
    except Exception as error:
        raise SchemaMalformed(
            f"tool {name!r}: {parameters!r} has no JSON Schema: {error}", tool=name
        ) from error
    if schema.get("type") != "object":
        raise SchemaMalformed(
            f"tool {name!r}: parameters= takes the type of an object, such as a pydantic model, not "
            f"{parameters!r}",
            tool=name,
        )
    strict = policy.get("strict") is True

    def validate(args_json: str) -> dict[str, Any]:
        return {"given": adapter.validate_json(args_json, strict=strict or None)}

    spec = spec_from(name, description, schema, policy, takes_context=True)
    return Blueprint(
        spec,
        validate,
        takes_context=True,
        available=asking(name, policy.get("available")),
        prepare=policy.get("prepare"),
        validators=tuple(policy.get("validators") or ()),
    )


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f"timeout= takes seconds greater than 0, not {timeout!r}")
    return timeout
