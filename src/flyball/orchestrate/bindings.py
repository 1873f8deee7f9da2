"""Bindings: the code behind a spec. What cannot be written down is looked up here, by the spec's names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.events import Outcome
from flyball.core.messages import ToolCall
from flyball.core.prompting import PromptProvider
from flyball.core.spec import LoopSpec, Purpose
from flyball.inference.engine import Engine
from flyball.orchestrate.features import NO_STAGES, Stages
from flyball.orchestrate.output import Reader
from flyball.orchestrate.requests import RequestParts, request_parts
from flyball.orchestrate.wrapping import wrapped
from flyball.tool.protocol import Tool

if TYPE_CHECKING:
    from flyball.core.forms.semstreams import ToolCallFilter, ToolCallFilterResult
    from flyball.prompt.text_template import TextTemplate

Said: TypeAlias = "str | TextTemplate | PromptProvider | None"
PromptFunction: TypeAlias = Callable[[RunContext[Any]], "Said | Awaitable[Said]"]
"""Gives instructions when a run begins. A template is one; and what it gives may be one, or a provider."""
Instruction: TypeAlias = "str | PromptFunction | PromptProvider"
"""What may stand among an agent's instructions."""
Validator: TypeAlias = Callable[[RunContext[Any], Any], Any]
"""Looks at an output: returns it (or a changed one), or raises ModelRetry with what to put right."""
Approval: TypeAlias = Callable[[RunContext[Any], ToolCall], "bool | str | Awaitable[bool | str]"]
"""Decides about a call: True, False, or the reason why not."""
FilterFunction: TypeAlias = Callable[
    [RunContext[Any], Sequence[ToolCall]], "ToolCallFilterResult | Awaitable[ToolCallFilterResult]"
]
"""A tool filter that is a function."""
ToolFilter: TypeAlias = "FilterFunction | ToolCallFilter"
"""Decides about all calls of a turn before any of them runs: lets through, changes arguments, rejects."""
Delivery: TypeAlias = Callable[[RunContext[Any], Outcome, Any], "Awaitable[None] | None"]
"""Runs once a loop's outcome is decided, at least once also after a crash: (context, outcome, output)."""


_NO_ENGINES: Mapping[Purpose, Engine] = {}


class Bindings:
    """Everything that a loop under a spec needs and that is code: never recorded, never sent."""

    __slots__ = (
        "acting",
        "approval",
        "bus",
        "deliveries",
        "deps",
        "editor",
        "engine",
        "engines",
        "filters",
        "identity",
        "lent",
        "model",
        "output",
        "parts",
        "prompt_functions",
        "ruled",
        "spec",
        "stages",
        "tools",
        "tracker",
        "validators",
        "waits_for_people",
        "watched",
    )

    def __init__(
        self,
        spec: LoopSpec,
        engine: Engine,
        tools: Mapping[str, Tool],
        output: Reader,
        *,
        prompt_functions: tuple[Instruction, ...] = (),
        validators: tuple[Validator, ...] = (),
        filters: tuple[ToolFilter, ...] = (),
        approval: Approval | None = None,
        deliveries: tuple[Delivery, ...] = (),
        deps: Any = None,
        editor: Callable[[], Bindings] | None = None,
        stages: Stages = NO_STAGES,
        engines: Mapping[Purpose, Engine] = _NO_ENGINES,
        watched: Callable[[type[Any]], type[Any]] | None = None,
    ) -> None:
        self.spec = spec
        self.model = engine
        """The engine of the model itself."""
        self.engine = wrapped(engine, stages, *spec.served_by("turn"))
        """What is asked: the model, with what stands around it."""
        self.engines = engines
        """The engines of model calls that are made for something else than a turn."""
        self.tools = tools
        self.output = output
        self.prompt_functions = prompt_functions
        self.validators = validators
        self.filters = filters
        self.approval = approval
        self.deliveries = deliveries
        self.deps = stages.own_deps if deps is None else deps
        self.editor = editor
        self.lent: tuple[str, ...] = ()
        """What was given for one run and is code: only who is given these bindings has it."""
        self.stages = stages
        self.bus = stages.bus
        """Where its functions may publish events, if anywhere."""
        self.acting = stages.acts_as
        """As whom its loops act, if as anybody."""
        self.identity = None if self.acting is None else self.acting.document
        """The same, as it is recorded."""
        self.tracker = stages.tracker
        """Who says what a run cost, if anybody does."""
        self.watched = watched
        """Makes a kind of driver one that tells those who watch; None where nobody does."""
        self.parts = request_parts(spec)
        self.ruled = bool(validators or stages.output_repairs or stages.reflections or output.text_function)
        """Whether code of the user's has a say about an output."""
        self.waits_for_people = spec.output.approval or (
            approval is None and any(tool.approval for tool in spec.tools.values())
        )
        """Whether a run may come to wait for somebody: its own calls, or its editor's."""
        if editor is not None and not self.waits_for_people:
            self.waits_for_people = editor().waits_for_people

    def with_deps(self, deps: Any) -> Bindings:
        """The same bindings with a run's own dependencies."""
        other = copy(self)
        other.deps = deps
        return other

    def engine_for(self, purpose: Purpose) -> Engine:
        """The engine that serves a purpose: the agent's own, unless there is another for it."""
        engine = self.engines.get(purpose)
        if engine is None:
            return self.engine
        return wrapped(engine, self.stages, *self.spec.served_by(purpose))

    def parts_for(self, spec: LoopSpec) -> RequestParts:
        """What all requests under a spec share; the recorded spec of a resumed loop may be another."""
        return self.parts if spec is self.spec else request_parts(spec)


def nobody_can_approve(bindings: Bindings) -> UserError:
    """What is wrong with a run that may come to wait for somebody, and that nobody can reach."""
    names = [name for name, tool in bindings.spec.tools.items() if tool.approval]
    if bindings.spec.output.approval:
        return UserError(
            "the answer needs approval, and nobody could give it: run with a journal= and send the signal "
            "there, or use run_stream() or iter() and their signal()"
        )
    if bindings.approval is not None or not names:
        assert bindings.editor is not None
        return nobody_can_approve(bindings.editor())
    return UserError(
        f"the tool {names[0]!r} needs approval, and nobody could give it: pass approval= to the agent, run "
        "with a journal= and send the signal there, or use run_stream() or iter() and their signal()"
    )
