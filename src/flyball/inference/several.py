"""SeveralEngines: what engines share that stand before several others, of which one answers each call."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.errors import UserError
from flyball.core.messages import Message
from flyball.inference.engine import Engine
from flyball.inference.profile import Profile, profile_for, shared
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.rendered import Prompt, Renders
from flyball.inference.request import ModelInfo, Request
from flyball.inference.wrapper import WrapperEngine


class SeveralEngines:
    """Stands before several engines. Who answered a call is said by the answer's `model`.

    Before a call nobody knows who will. So `model_info` is of all of them: it names what stands before them
    and each, the context window is the smallest that is known, and the provider is theirs if they have the
    same one. The profile is what all of them can do. It is a `Renders` where one of them is.
    """

    kind: str = "several"
    """What it is called, in `model_info`."""

    def __init__(self, models: Iterable[str | Engine], registry: Registry = DEFAULT) -> None:
        """Make it.

        Raises:
            UserError: there is no model.
            ConfigurationFailure: there is no such model (see `Registry.resolve`).
        """
        self.engines = tuple([resolve_engine(model, registry) for model in models])
        if not self.engines:
            raise UserError(f"{self.kind} needs models to choose from, and was given none")
        if any(isinstance(engine, Renders) for engine in self.engines):
            self.rendered = self._rendered

    @property
    def profile(self) -> Profile:
        """What all of them can do."""
        return shared([profile_for(engine) for engine in self.engines])

    def model_info(self) -> ModelInfo:
        """All of them, under one name."""
        infos = [engine.model_info() for engine in self.engines]
        providers = {info.provider for info in infos}
        name = f"{self.kind}({', '.join([info.name for info in infos])})"
        return ModelInfo(name, self.profile.context_window, providers.pop() if len(providers) == 1 else "")

    async def aclose(self) -> None:
        """Let go of what the engines hold: of all of them, also where one fails to.

        Raises:
            Exception: the first failure.
        """
        failures: list[Exception] = []
        for engine in {id(one): one for one in self.engines}.values():
            close = getattr(engine, "aclose", None)
            try:
                if close is not None:
                    await close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        """See `Renders.rendered`: what the engine that answered made of it.

        Without an answer every engine must be able to put it to its model, and the first one's is given.
        Nothing is told by an engine that sends requests as they are.
        """
        if answer is not None:
            engine = self.answered(answer)
            return engine.rendered(request, answer) if isinstance(engine, Renders) else ()
        told = [one.rendered(request, None) if isinstance(one, Renders) else () for one in self.engines]
        return told[0]

    def answered(self, answer: Message) -> Engine | None:
        """Which of the engines gave an answer, told by its model's name; None where it does not say so."""
        said = answer.model or ""
        # Providers may add a date to a model's name: the longest that fits is meant.
        fitting = [
            (len(name), number)
            for number, engine in enumerate(self.engines)
            for name in _names(engine)
            if name and said.startswith(name)
        ]
        return self.engines[max(fitting, key=lambda one: (one[0], -one[1]))[1]] if fitting else None


def _names(engine: object) -> list[str]:
    """The names that the models behind an engine go by."""
    if isinstance(engine, SeveralEngines):
        return [name for one in engine.engines for name in _names(one)]
    if isinstance(engine, WrapperEngine):
        return _names(engine.engine)
    return [engine.model_info().name] if isinstance(engine, Engine) else []
