"""SpecializedLoop: one question, one answer that follows a schema. Nothing is kept from one call to the next.

Without tools the model is asked once, held to the schema. With tools there are two phases: first it talks and
calls tools as it likes, then it is told to give its answer in the form that is wanted, and has no tools. The
context that was looked up for the prompt is there in both; the second phase's words are not looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from typing_extensions import Unpack

from flyball.core.context_provider import ContextProvider
from flyball.core.errors import NoEngine, SchemaRequired
from flyball.core.feature import Feature
from flyball.core.messages import Content
from flyball.core.settings import PAGANTIC, STRUCTURED, ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.request import NO_SETTINGS
from flyball.inference.stream import StreamHandler
from flyball.observe.event_log import EventLog
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import run_heard
from flyball.orchestrate.flow.options import FlowOptions
from flyball.orchestrate.flow.result import FlowResult
from flyball.orchestrate.flow.running import run_flow
from flyball.orchestrate.patterns.answered import Answered
from flyball.orchestrate.patterns.failing import by_category
from flyball.orchestrate.patterns.hearing import heard_by
from flyball.orchestrate.patterns.looking import looking_up
from flyball.orchestrate.patterns.observing import watching
from flyball.orchestrate.patterns.phases import Phases, answer_mode
from flyball.orchestrate.schema_output import SchemaOutput


@dataclass(frozen=True, kw_only=True)
class SpecializedConfig:
    """What a SpecializedLoop is made of.

    `schema` is a JSON Schema, or a type. `grammar` (GBNF) holds the decoder, where the engine can; an empty
    one is none. `settings` are laid over pagantic's for structured answers: 2,048 tokens, temperature 0.3, no
    thinking. `observer` is told all that happens. `features` are those of an agent.
    """

    engine: Engine | str | None = None
    schema: Any = None
    tools: Sequence[Any] = ()
    system_prompt: Any = ""
    grammar: str = ""
    max_tokens: int = 2048
    stream: StreamHandler | None = None
    observer: EventLog | None = None
    context_provider: ContextProvider | None = None
    features: Sequence[Feature] = ()
    settings: ModelSettings = NO_SETTINGS
    name: str = "specialized"


class SpecializedResult(Answered, frozen=True, eq=False):
    """An answer that follows the schema: `output` is what it was read as."""


class SpecializedLoop:
    """Asks a model for an answer that follows a schema.

    Raises:
        NoEngine: the configuration names no model.
        SchemaRequired: it has no schema.
    """

    def __init__(self, config: SpecializedConfig) -> None:
        if config.engine is None:
            raise NoEngine("SpecializedConfig.engine is needed: an engine, or a model string such as 'local'")
        if config.schema is None:
            raise SchemaRequired("SpecializedConfig.schema is needed: a JSON Schema, or a type")
        self.config = config
        engine = resolve_engine(config.engine)
        self.watchers = watching(config.observer)
        watched = [*config.features, *self.watchers]
        features = [*watched, *looking_up(config.context_provider, when="run")]
        instructions = config.system_prompt or ()
        settings = config.settings.over(ModelSettings(max_tokens=config.max_tokens).over(PAGANTIC))
        output: Any = config.schema
        if isinstance(output, dict):
            output = SchemaOutput(cast("dict[str, Any]", output))
        answering: dict[str, Any] = {
            "output": output,
            "settings": settings.over(STRUCTURED),
            "grammar": config.grammar or None,
            "name": config.name,
            "output_mode": answer_mode(engine, config.grammar),
        }
        if not config.tools:
            told = Agent[Any, Any](engine, instructions=instructions, features=features, **answering)
            self.phases = Phases(told, None, config.name)
            return
        # What the second phase is told first is what the first one was, with the context that it has.
        gathering = Agent[Any, Any](
            engine,
            tools=config.tools,
            instructions=instructions,
            settings=settings,
            features=features,
            name=f"{config.name}-gathering",
        )
        self.phases = Phases(Agent(engine, features=watched, **answering), gathering, config.name)

    async def call(self, prompt: Content, **options: Unpack[FlowOptions]) -> SpecializedResult:
        """Ask, and give the answer.

        With a journal and a `loop_id` that it holds already, it goes on where it stood.

        Raises:
            FlyballError: the model could not be asked, or gave no valid answer; `partial` is what there is.
        """
        if self.config.stream is not None and "hear" not in options:
            options["hear"] = heard_by(self.config.stream)
        async with by_category(self.phases.answering.config.output):
            if self.phases.gathering is not None:
                options.setdefault("features", self.watchers)
                return answered(await run_flow(self.phases.step(prompt), None, options))
            hear, chosen = options.get("hear"), {name: one for name, one in options.items() if name != "hear"}
            run = await run_heard(self.phases.answering, prompt, chosen, hear)
            return SpecializedResult(run.text, run.output, run.usage, run)


def answered(flow: FlowResult[Any]) -> SpecializedResult:
    """What a flow whose last step asked an agent has given."""
    run = flow.steps[-1].run
    assert run is not None, "it was an agent that was asked"
    return SpecializedResult(run.text, flow.output, flow.usage, run)
