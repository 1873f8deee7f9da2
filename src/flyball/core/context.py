"""RunContext: what a user's function may know about the run that it is called in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, get_origin

from msgspec import UNSET, Struct, UnsetType
from typing_extensions import TypeVar

from flyball.core.apart import apart, messages_apart
from flyball.core.carried import Carried
from flyball.core.claimed import claimed_capabilities, claimed_did
from flyball.core.correlation import Correlation
from flyball.core.detach import Detach, DetachSource
from flyball.core.errors import DepsError, UserError
from flyball.core.messages import Message
from flyball.core.usage import CallUsage, RunUsage

if TYPE_CHECKING:
    from flyball.core.snapshot import RunSnapshot

EventT = TypeVar("EventT")
DepsT = TypeVar("DepsT", default=Any, contravariant=False)
T = TypeVar("T")


class Bus(Protocol):
    """What functions of a run may do with the event bus. See `flyball.observe.bus.EventBus`."""

    def subscribe(
        self, kind: type[EventT], handler: Callable[[EventT], Awaitable[None] | None]
    ) -> Callable[[], None]:
        """Have a handler called with each event of a type; gives what ends that."""
        ...

    async def publish(self, event: object) -> None:
        """Hand an event to all who subscribed to its type; returns when they are done."""
        ...

    def publish_async(self, event: object) -> None:
        """Queue an event, and return at once."""
        ...


class RunFacts(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What a RunContext tells, as data that can travel to another process.

    `idempotency_key` is the same each time the same call is run, also in another process after a crash.
    `history` is there only where it was asked for, and so is `carried`, what a snapshot has besides. `at` is
    the time at which a function is called by the loop itself, and `spent` what each model call used; tools
    are not told. `detached`: the call had been asked to detach before it was run. `deadline` is when the run
    must be over, in seconds since the epoch; None if there is no such time. `child` is a loop that the call
    had begun and that is over now: why it is run again. `identity` is as whom the run acts.
    """

    loop_id: str
    turn: int = 0
    attempt: int = 1
    started_at: float = 0.0
    prompt: str = ""
    usage: RunUsage = RunUsage()
    tool_name: str = ""
    tool_call_id: str = ""
    idempotency_key: str = ""
    retry: int = 0
    max_retries: int = 0
    parent_loop_id: str = ""
    metadata: dict[str, Any] | None = None
    correlation: Correlation = Correlation()
    history: tuple[Message, ...] | None = None
    depth: int = 0
    max_depth: int | None = None
    at: float = 0.0
    carried: Carried | None = None
    spent: tuple[CallUsage, ...] = ()
    detached: bool = False
    tool_state: dict[str, Any] | None = None
    deadline: float | None = None
    child: str = ""
    identity: dict[str, Any] | None = None


class RunContext(Generic[DepsT]):
    """The run as seen from a tool, a prompt function or a validator: its dependencies and its facts.

    It is a snapshot, made for one call; nothing that is done to it reaches the run. Another agent that is run
    from within one is told so: `await other.run("…", parent=ctx)` begins a child of this run.
    """

    __slots__ = (
        "_acting",
        "_begun",
        "_bus",
        "_deps",
        "_detach",
        "_detaches",
        "_home",
        "_messages",
        "_saved",
        "facts",
    )

    def __init__(
        self, deps: DepsT, facts: RunFacts, home: Any = None, detaches: DetachSource | None = None
    ) -> None:
        self._deps = deps
        self.facts = facts
        self._home = home
        self._detaches = detaches

    @property
    def home(self) -> Any:
        """Where child loops go unless they are told otherwise (`orchestrate.children.Home`), or None."""
        return self._home

    def number(self, name: str) -> int:
        """How often this was asked with the same name before: what tells children that are alike apart."""
        try:
            begun = self._begun
        except AttributeError:
            begun = self._begun = dict[str, int]()
        begun[name] = count = begun.get(name, -1) + 1
        return count

    @property
    def event_bus(self) -> Bus | None:
        """The event bus of the run's agent (`flyball.EventBus`), in this process; None if it has none."""
        try:
            return self._bus
        except AttributeError:
            return None

    @event_bus.setter
    def event_bus(self, bus: Bus) -> None:
        self._bus = bus

    @property
    def acting(self) -> Any:
        """What hands the run's capabilities on to loops under it (`flyball.identity.ActsAs`), or None."""
        try:
            return self._acting
        except AttributeError:
            return None

    @acting.setter
    def acting(self, acting: Any) -> None:
        self._acting = acting

    @property
    def identity(self) -> dict[str, Any] | None:
        """As whom the run acts, as SemStreams writes it, or None; `AgentIdentity.recorded` reads it."""
        return apart(self.facts.identity)

    @property
    def did(self) -> str:
        """The DID that the run acts under, or an empty text."""
        return claimed_did(self.facts.identity)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What the run's credentials say that it may do; whether they hold, `RequireCapabilities` sees to."""
        return claimed_capabilities(self.facts.identity)

    @property
    def deps(self) -> DepsT:
        """The run's dependencies, as they were passed to the run (or bound in this worker)."""
        return self._deps

    def get_deps(self, kind: type[T]) -> T:
        """The dependencies, which must be of this type.

        Raises:
            DepsError: there are none, or they are of another type.
        """
        if (deps := self.try_deps(kind)) is not None:
            return deps
        found = "none were given" if self._deps is None else f"they are a {type(self._deps).__name__}"
        raise DepsError(f"the run's dependencies should be a {getattr(kind, '__name__', kind)}, but {found}")

    def try_deps(self, kind: type[T]) -> T | None:
        """The dependencies if they are of this type, else None; of `dict[str, int]` the `dict` counts."""
        try:
            return self._deps if isinstance(self._deps, kind) else None
        except TypeError:
            whole = get_origin(kind)
            if not isinstance(whole, type):
                raise
            return cast("T", self._deps) if isinstance(self._deps, whole) else None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history so far.

        Raises:
            UserError: in a tool that did not say `history=True`; its calls travel without the history. Or
                outside a run, in a context that was made without one.
        """
        if self.facts.history is None:
            name = self.facts.tool_name
            raise UserError(
                f"the tool {name!r} reads ctx.messages: declare it with @tool(history=True)"
                if name
                else "this RunContext has no history: it is of no run; make it with RunFacts(history=…)"
            )
        try:
            return self._messages
        except AttributeError:
            self._messages = messages_apart(self.facts.history)
            return self._messages

    def snapshot(self) -> RunSnapshot:
        """The run as it stands, to be kept and gone on from by `agent.run(prompt, snapshot=...)`.

        An answer whose calls are not answered yet, such as the one that asked for this tool, is not in it.
        Where tools are not told the time, `timestamp` is None.

        Raises:
            UserError: where there are no `messages`: in a tool that did not say `history=True`, and outside a
                run.
        """
        from flyball.core.snapshot import taken

        facts = self.facts
        carried = facts.carried or Carried(
            facts.loop_id, facts.parent_loop_id, max(facts.turn - 1, 0), facts.prompt, facts.usage
        )
        return taken(
            self.messages,
            carried,
            started_at=facts.started_at,
            at=facts.at or None,
        )

    @property
    def usage(self) -> RunUsage:
        """What the run has used so far."""
        return self.facts.usage

    @property
    def spent(self) -> tuple[CallUsage, ...]:
        """What each model call of the run has used, as conditions and the like are told; empty in a tool."""
        return self.facts.spent

    @property
    def prompt(self) -> str:
        """The text of the run's prompt."""
        return self.facts.prompt

    @property
    def run_id(self) -> str:
        """The run's id, which is the loop's id."""
        return self.facts.loop_id

    @property
    def depth(self) -> int:
        """How deep the run stands under others: 0 for one that was begun from outside."""
        return self.facts.depth

    @property
    def parent_run_id(self) -> str:
        """The id of the run that this one was begun from, or an empty text."""
        return self.facts.parent_loop_id

    @property
    def run_step(self) -> int:
        """The turn, counted from 1."""
        return self.facts.turn

    @property
    def deadline(self) -> float | None:
        """When the run must be over, in seconds since the epoch: its own time is up, or that of one above."""
        return self.facts.deadline

    @property
    def elapsed(self) -> float:
        """Seconds since the run began, as guardrails, conditions and the like are told; 0.0 in a tool."""
        return max(0.0, self.facts.at - self.facts.started_at) if self.facts.at else 0.0

    @property
    def tool_name(self) -> str:
        """The tool that is called, or an empty text outside a tool."""
        return self.facts.tool_name

    @property
    def tool_call_id(self) -> str:
        """The id of the tool call, or an empty text outside a tool."""
        return self.facts.tool_call_id

    @property
    def idempotency_key(self) -> str:
        """Names this call for ever: the same when it is run again after a crash."""
        return self.facts.idempotency_key

    @property
    def detach(self) -> Detach:
        """Whether somebody has asked this tool call to move its work to the background, and return.

        Raises:
            UserError: outside a tool call of a run: nobody could ask.
        """
        try:
            return self._detach
        except AttributeError:
            source, facts = self._detaches, self.facts
            if source is None:
                raise UserError("ctx.detach is for tools while a run calls them: nobody could ask") from None
            self._detach = source.detach(facts.idempotency_key, asked=facts.detached)
            return self._detach

    @property
    def retry(self) -> int:
        """How often this tool (or this output) has been tried in vain just now."""
        return self.facts.retry

    @property
    def max_retries(self) -> int:
        """How often it may be."""
        return self.facts.max_retries

    @property
    def tool_state(self) -> dict[str, Any] | None:
        """The states of the run's stateful tools, by name, as they were when this was called, or None."""
        return apart(self.facts.tool_state)

    def tool_state_by_name(self, name: str, default: Any = None) -> Any:
        """The state of that name, or `default` where no call has left one yet."""
        return apart((self.facts.tool_state or {}).get(name, default))

    def save_tool_state(self, state: Any) -> None:
        """Leave the state of the tool that is called, as JSON, for its next call.

        It is recorded with the call's result, if the call ends well. For tools whose spec names a state.
        """
        self._saved = state

    @property
    def saved_tool_state(self) -> Any | UnsetType:
        """What `save_tool_state` was last given; UNSET if it was not called."""
        try:
            return self._saved
        except AttributeError:
            return UNSET

    @property
    def metadata(self) -> dict[str, Any]:
        """The task's domain context."""
        return apart(self.facts.metadata or {})
