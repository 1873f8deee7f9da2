"""The features of an agent, sorted by where they have their say, and what it has, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.feature import Feature

if TYPE_CHECKING:
    from flyball.context.knowledge import Knowledge
    from flyball.core.deps import Deps
    from flyball.identity.acting import ActsAs
    from flyball.inference.middleware.kinds import Middleware
    from flyball.memory.compactor import Compactor
    from flyball.memory.processor import HistoryProcessor
    from flyball.observe.bus import EventBus
    from flyball.observe.cost import CostTracker
    from flyball.observe.exporters import Tracing
    from flyball.observe.hooks import Hook
    from flyball.observe.watcher import Watcher
    from flyball.tool.ambient import AmbientContext
    from flyball.tool.preparing import ToolsPrepare
    from flyball.tool.timing import DefaultToolTimeout
    from flyball.tool.truncation import ToolOutputTruncation
    from flyball.tool.validating import ToolResultValidator
    from flyball.validate.conditions import RunCondition
    from flyball.validate.guardrails import InputGuardrail, TurnGuardrail
    from flyball.validate.interceptors import MessageInterceptor, ResponseInterceptor
    from flyball.validate.reflection import Reflection
    from flyball.validate.repair import ModelRepair, OutputRepair


class Stages(Struct, frozen=True):
    """An agent's features by place, each in the order in which they were given."""

    input_guardrails: tuple[InputGuardrail, ...] = ()
    turn_guardrails: tuple[TurnGuardrail, ...] = ()
    message_interceptors: tuple[MessageInterceptor, ...] = ()
    response_interceptors: tuple[ResponseInterceptor, ...] = ()
    conditions: tuple[RunCondition, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    ambient: tuple[AmbientContext, ...] = ()
    trackers: tuple[CostTracker, ...] = ()
    output_repairs: tuple[OutputRepair, ...] = ()
    model_repairs: tuple[ModelRepair, ...] = ()
    tools_prepares: tuple[ToolsPrepare, ...] = ()
    result_validators: tuple[ToolResultValidator, ...] = ()
    truncations: tuple[ToolOutputTruncation, ...] = ()
    default_timeouts: tuple[DefaultToolTimeout, ...] = ()
    middleware: tuple[Middleware, ...] = ()
    deps: tuple[Deps, ...] = ()
    knowledge_bases: tuple[Knowledge, ...] = ()
    auto_contexts: tuple[Compactor, ...] = ()
    history_processors: tuple[HistoryProcessor, ...] = ()
    watchers: tuple[Watcher, ...] = ()
    tracings: tuple[Tracing, ...] = ()
    identity: tuple[ActsAs, ...] = ()

    @property
    def acts_as(self) -> ActsAs | None:
        """As whom the agent's loops act."""
        return self.identity[0] if self.identity else None

    @property
    def tracker(self) -> CostTracker | None:
        """Who says what a run cost: the first of them."""
        return self.trackers[0] if self.trackers else None

    @property
    def own_deps(self) -> Any:
        """What `ctx.deps` is in runs that are given none."""
        return self.deps[0].value if self.deps else None

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The watchers that are hooks."""
        if not self.watchers:
            return ()
        from flyball.observe.hooks import Hook

        return tuple([one for one in self.watchers if isinstance(one, Hook)])

    @property
    def bus(self) -> EventBus | None:
        """What functions reach as `ctx.event_bus`: the first of them."""
        if not self.watchers:
            return None
        from flyball.observe.bus import EventBus

        return next((one for one in self.watchers if isinstance(one, EventBus)), None)

    @property
    def request_middleware(self) -> tuple[Middleware, ...]:
        """Those around calls whose answers are wanted whole."""
        return tuple([one for one in self.middleware if one.has_request])

    @property
    def stream_middleware(self) -> tuple[Middleware, ...]:
        """Those around calls whose answers are wanted in pieces."""
        return tuple([one for one in self.middleware if one.has_stream])

    @property
    def admits(self) -> bool:
        """Whether somebody looks at the prompt."""
        return bool(self.input_guardrails) or any(one.when == "run" for one in self.knowledge_bases)

    @property
    def prepares(self) -> bool:
        """Whether somebody looks at what is sent."""
        if self.turn_guardrails or self.message_interceptors or self.tools_prepares:
            return True
        if self.history_processors or self.auto_contexts:
            return True
        return any(one.when == "turn" for one in self.knowledge_bases)

    @property
    def reviews(self) -> bool:
        """Whether somebody looks at what comes back."""
        return bool(self.response_interceptors or self.conditions)

    @property
    def delivers(self) -> bool:
        """Whether somebody is told the answer."""
        return any(one.auto_store for one in self.knowledge_bases)

    @property
    def names(self) -> tuple[str, ...]:
        """What those with a say are called, one for each place that it has, in the order of the places."""
        places = [place for place in self.__struct_fields__ if place not in _WITHOUT_A_SAY]
        return tuple([feature.name for place in places for feature in getattr(self, place)])


@cache
def _kinds() -> dict[str, type[Feature]]:
    """The kind of feature that has its say at each place. Only who has features needs them."""
    from flyball.context.knowledge import Knowledge
    from flyball.core.deps import Deps
    from flyball.identity.acting import ActsAs
    from flyball.inference.middleware.kinds import Middleware
    from flyball.memory.compactor import Compactor
    from flyball.memory.processor import HistoryProcessor
    from flyball.observe.cost import CostTracker
    from flyball.observe.exporters import Tracing
    from flyball.observe.watcher import Watcher
    from flyball.tool.ambient import AmbientContext
    from flyball.tool.preparing import ToolsPrepare
    from flyball.tool.timing import DefaultToolTimeout
    from flyball.tool.truncation import ToolOutputTruncation
    from flyball.tool.validating import ToolResultValidator
    from flyball.validate.conditions import RunCondition
    from flyball.validate.guardrails import InputGuardrail, TurnGuardrail
    from flyball.validate.interceptors import MessageInterceptor, ResponseInterceptor
    from flyball.validate.reflection import Reflection
    from flyball.validate.repair import ModelRepair, OutputRepair

    return {
        "input_guardrails": InputGuardrail,
        "turn_guardrails": TurnGuardrail,
        "message_interceptors": MessageInterceptor,
        "response_interceptors": ResponseInterceptor,
        "conditions": RunCondition,
        "reflections": Reflection,
        "ambient": AmbientContext,
        "trackers": CostTracker,
        "output_repairs": OutputRepair,
        "model_repairs": ModelRepair,
        "tools_prepares": ToolsPrepare,
        "result_validators": ToolResultValidator,
        "truncations": ToolOutputTruncation,
        "default_timeouts": DefaultToolTimeout,
        "middleware": Middleware,
        "deps": Deps,
        "knowledge_bases": Knowledge,
        "auto_contexts": Compactor,
        "history_processors": HistoryProcessor,
        "watchers": Watcher,
        "tracings": Tracing,
        "identity": ActsAs,
    }


_WITHOUT_A_SAY: frozenset[str] = frozenset(
    {"ambient", "trackers", "default_timeouts", "middleware", "deps", "watchers", "tracings", "identity"}
)
"""Places whose features decide nothing about the loop: a loop goes on as well without them."""

NO_STAGES = Stages()


def stages_of(features: Iterable[Feature]) -> Stages:
    """Features, sorted; one that is of several kinds stands in several places.

    Raises:
        UserError: there is more than one reflection, set of dependencies or identity.
    """
    given = tuple(features)
    if not given:
        return NO_STAGES
    sorted_out: dict[str, Any] = {
        place: tuple([feature for feature in given if isinstance(feature, kind)])
        for place, kind in _kinds().items()
    }
    stages = Stages(**sorted_out)
    if len(stages.reflections) > 1:  # they would count each other's turns
        names = ", ".join([reflection.name for reflection in stages.reflections])
        raise UserError(f"an agent has one reflection at most, not {names}: make one of them")
    if len(stages.deps) > 1:
        raise UserError("an agent has one Deps at most: leave the others out; a run's own are given by deps=")
    if len(stages.identity) > 1:
        names = " and ".join([str(one.identity.did) for one in stages.identity])
        raise UserError(f"an agent acts as one identity, not as {names}: leave all but one ActsAs out")
    return stages


def as_features(given: Any) -> tuple[Feature, ...]:
    """What a user passed as `features=`.

    Raises:
        UserError: it is no list of features, or holds something else.
    """
    if isinstance(given, Feature) or not isinstance(given, Iterable):
        raise UserError(f"features= takes several features, such as features=[{given!r}], not one")
    features: list[Feature] = []
    for feature in given:  # pyright: ignore[reportUnknownVariableType] - anybody's
        if not isinstance(feature, Feature):
            raise UserError(
                f"features= takes objects such as MaxTurns(5), and functions as @InputGuardrail or the like: "
                f"{feature!r} is neither"  # pyright: ignore[reportUnknownArgumentType]
            )
        features.append(feature)
    return tuple(features)
