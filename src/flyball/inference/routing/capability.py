"""by_capability: the first model that can do what a request needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flyball.core.errors import ContextExceeded, InferenceFailure, ModelUnavailable
from flyball.core.messages import Image, ToolResult
from flyball.inference.engine import Engine
from flyball.inference.estimating import call_tokens
from flyball.inference.profile import Profile, combined, profile_for
from flyball.inference.registry import DEFAULT, Registry
from flyball.inference.request import Request
from flyball.inference.routing.router import Route, RouterEngine

WINDOW = "context_window"


class CapabilityRouter(RouterEngine):
    """Asks the first of its models whose profile has all that a request needs.

    Its own profile is what any of them can do. Two things that no single one can do may be there, and a
    request that needs both fails.
    """

    kind = "by_capability"

    def __init__(
        self,
        models: Iterable[str | Engine],
        size: Callable[[Request], float] = call_tokens,
        registry: Registry = DEFAULT,
    ) -> None:
        """`size` says how many tokens a call will have."""
        super().__init__(models, registry)
        self._size = size

    @property
    def profile(self) -> Profile:
        """What any of them can do."""
        return combined([profile_for(engine) for engine in self.engines])

    async def choose(self, request: Request) -> Route:
        """See `RouterEngine.choose`.

        Raises:
            ContextExceeded: it is too long for every model that could answer it.
            ModelUnavailable: no model can do all of it.
        """
        needs, size, lacking = needed(request), None, dict[str, list[str]]()
        for engine in self.engines:
            profile = profile_for(engine)
            lacks = [name for name in needs if not getattr(profile, name)]
            if profile.context_window and not lacks:
                size = self._size(request) if size is None else size
                lacks = [WINDOW] if size > profile.context_window else []
            if not lacks:
                return Route(engine)
            lacking.setdefault(engine.model_info().name, lacks)
        raise _nobody(lacking, size)


def needed(request: Request) -> tuple[str, ...]:
    """What a model must be able to do to answer a request, by the names of a profile's fields."""
    needs: list[str] = []
    if request.tools:
        needs.append("tools")
    if request.output is not None:
        needs.append("native_schema")
    if request.grammar is not None:
        needs.append("grammar")
    if any(_is_seen(part) for message in request.messages for part in message.parts):
        needs.append("images")
    return tuple(needs)


def _is_seen(part: object) -> bool:
    return isinstance(part, Image) or (isinstance(part, ToolResult) and bool(part.images))


def _nobody(lacking: dict[str, list[str]], size: float | None) -> InferenceFailure:
    each = "; ".join([f"{name} lacks {', '.join(lacks)}" for name, lacks in lacking.items()])
    if any(lacks == [WINDOW] for lacks in lacking.values()):
        return ContextExceeded(
            f"the call has about {size:g} tokens, and no model that could answer it takes so many: {each}",
            lacking=lacking,
        )
    return ModelUnavailable(f"no model can do all that is asked for: {each}", lacking=lacking)


def by_capability(
    first: str | Engine,
    *more: str | Engine,
    size: Callable[[Request], float] = call_tokens,
    registry: Registry = DEFAULT,
) -> CapabilityRouter:
    """The first of some models that can do what a request needs: name the one you like best first.

    It is looked at whether the request has tools, images, a schema or a grammar to be held to, and how long
    it is. A model whose context window is not known is taken to be large enough.

    Args:
        first: a model string, or an engine.
        more: the others.
        size: says how many tokens a call will have; by default an estimate, with `max_tokens`.
        registry: where model strings are looked up.

    Raises:
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return CapabilityRouter((first, *more), size, registry)
