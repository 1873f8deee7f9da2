"""The ways of asking that are compared. A method is anything that answers a task with a reply.

    plain       the tools or the schema stand in the instructions, JSON is demanded, and read strictly
    repair      the same answer, repaired before it is read
    grammar     an Agent as a user writes one: tools as tools, the schema as native output
    vote        the same five times, warm enough that they differ, and the majority of what is valid

No method but the vote asks twice: the first answer counts, whatever it is. A failure of the engine is no
answer: it is raised.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bench.control.reading import calls_of, read_json, valid_calls, valid_value
from bench.control.tasks import Call, ExtractionTask, Task, Tool, ToolTask
from flyball.core.messages import FinishReason, Message, system, user
from flyball.core.settings import ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.request import Request
from flyball.orchestrate.patterns.voting import MajorityVoting, canonical

SETTINGS = ModelSettings(temperature=0.0, max_tokens=512, seed=0)
"""How all methods ask, unless the command line says otherwise."""
VOTERS, WARM = 5, 0.7
"""How many are asked in a vote, and how warm, where no temperature is set."""


class Reply(Struct, frozen=True):
    """What came of asking: the text, what was read from it, and what it took.

    `calls` belongs to tool choice, `value` to extraction; None where nothing could be read.
    """

    text: str
    calls: tuple[Call, ...] | None = None
    value: Any = None
    valid: bool = False
    cut: bool = False
    seconds: float = 0.0
    tokens: int = 0
    confidence: float | None = None
    """How many of those who were asked agree, where there was a vote."""


class Method(Protocol):
    """One way of asking a model."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    async def answer(self, task: Task) -> Reply:
        """The model's reply to a task.

        Raises:
            FlyballError: the engine failed; there is no reply.
        """
        ...


class Said(Struct, frozen=True):
    """A model's message, and how long it took."""

    message: Message
    seconds: float

    @property
    def cut(self) -> bool:
        """Whether it ended because there was no room for more."""
        return self.message.finish_reason is FinishReason.LENGTH

    @property
    def tokens(self) -> int:
        """How many tokens it has."""
        return self.message.usage.output_tokens if self.message.usage is not None else 0


class Prompting:
    """Asks with everything in the instructions. What was said is kept: two methods read the same answer."""

    def __init__(self, engine: Engine, settings: ModelSettings = SETTINGS) -> None:
        self._engine = engine
        self._settings = settings
        self._said: dict[str, Said] = {}

    async def say(self, task: Task) -> Said:
        """What the model says to a task."""
        if task.id not in self._said:
            began = time.perf_counter()
            request = Request((system(instructions_for(task)), user(task.prompt)), settings=self._settings)
            result = await self._engine.infer(request)
            self._said[task.id] = Said(result.message, time.perf_counter() - began)
        return self._said[task.id]


class Prompted:
    """`plain`, or with `repair` the method of that name."""

    def __init__(self, prompting: Prompting, *, repair: bool) -> None:
        self._prompting = prompting
        self._repair = repair
        self.name = "repair" if repair else "plain"

    async def answer(self, task: Task) -> Reply:
        """Read what the model said as JSON."""
        said = await self._prompting.say(task)
        return reply(task, said, read_json(said.message.text, repair=self._repair))


class Grammar:
    """`grammar`: an agent's first turn."""

    name = "grammar"

    def __init__(self, engine: Engine, settings: ModelSettings = SETTINGS) -> None:
        self._engine = engine
        self._settings = settings

    async def answer(self, task: Task) -> Reply:
        """Run an agent for one turn, and read its message without any repair.

        Text without a call is how an agent says that no tool is needed; saying nothing at all is not valid.
        """
        said = await self._first_turn(task)
        message = said.message
        if isinstance(task, ExtractionTask):
            return reply(task, said, read_json(message.text, repair=False))
        entries = [
            {"tool": call.name, "args": read_json(call.args_json, repair=False)}
            for call in message.tool_calls
        ]
        if not entries and not message.text.strip():
            return reply(task, said, None)
        return reply(task, said, {"calls": entries}, message.text or json.dumps(entries))

    async def _first_turn(self, task: Task) -> Said:
        from flyball import Agent
        from flyball.tool import FunctionTool

        made: dict[str, Any] = {"instructions": task.instructions, "settings": self._settings, "retries": 0}
        if isinstance(task, ToolTask):
            made["tools"] = [
                FunctionTool.from_schema(_done, tool.name, tool.description, tool.schema)
                for tool in task.tools
            ]
        else:
            made |= {"output": task.schema, "output_mode": "native"}
        began = time.perf_counter()
        async with Agent(self._engine, **made).iter(task.prompt) as run:
            step = await run.next()
            seconds = time.perf_counter() - began
            if step is None or step.message is None:
                # The model said nothing: the run's own failure says why.
                return Said(run.result.messages[-1], seconds)
            return Said(step.message, seconds)


class Vote:
    """`vote`: several agents' first turns, and a vote on them. What is not valid has no vote."""

    name = "vote"

    def __init__(self, engine: Engine, settings: ModelSettings = SETTINGS) -> None:
        warm = settings.temperature or WARM
        self._voters = [
            Grammar(engine, replace(settings, temperature=warm, seed=(settings.seed or 0) + number))
            for number in range(VOTERS)
        ]

    async def answer(self, task: Task) -> Reply:
        """Ask all, and give the majority's reply, with what all of them took."""
        replies = [await voter.answer(task) for voter in self._voters]
        took = {"seconds": sum(one.seconds for one in replies), "tokens": sum(one.tokens for one in replies)}
        candidates = [(canonical(_meant(one)), one) for one in replies if one.valid]
        if not candidates:
            return replace(replies[0], **took, confidence=0.0)
        winner, share = MajorityVoting().vote([meant for meant, _ in candidates])
        chosen = next(one for meant, one in candidates if meant == winner)
        return replace(chosen, **took, confidence=share * len(candidates) / len(replies))


def _meant(given: Reply) -> Any:
    """What a reply comes to, whatever its words."""
    return given.value if given.calls is None else [[call.tool, call.args] for call in given.calls]


async def _done(**arguments: object) -> str:
    """What every tool of a task does."""
    return f"done: {arguments}"


def reply(task: Task, said: Said, answer: Any, text: str | None = None) -> Reply:
    """What was said, with what was read from it."""
    text = said.message.text if text is None else text
    if isinstance(task, ToolTask):
        calls = calls_of(answer)
        valid = calls is not None and valid_calls(task.tools, calls)
        return Reply(text, calls, None, valid and not said.cut, said.cut, said.seconds, said.tokens)
    valid = answer is not None and valid_value(task.schema, answer)
    return Reply(text, None, answer, valid and not said.cut, said.cut, said.seconds, said.tokens)


def instructions_for(task: Task) -> str:
    """The instructions of `plain` and `repair`: the task's own, what is on offer, the form of the answer."""
    if isinstance(task, ToolTask):
        tools = "\n".join(_line(tool) for tool in task.tools)
        return (
            f"{task.instructions}\n\nThe tools:\n{tools}\n\n"
            "Answer with JSON and nothing else, in this form:\n"
            '{"calls": [{"tool": "name of the tool", "args": {"name of the parameter": "value"}}]}\n'
            'Several calls may stand in the list. When no tool is needed, answer {"calls": []}.'
        )
    return (
        f"{task.instructions}\n\n"
        "Answer with one JSON object and nothing else. It must follow this JSON Schema:\n"
        f"{json.dumps(task.schema)}"
    )


def _line(tool: Tool) -> str:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.schema["properties"]}
    return json.dumps(told)


def methods_for(engine: Engine, settings: ModelSettings = SETTINGS) -> Mapping[str, Method]:
    """All methods on one engine, by name."""
    prompting = Prompting(engine, settings)
    methods: tuple[Method, ...] = (
        Prompted(prompting, repair=False),
        Prompted(prompting, repair=True),
        Grammar(engine, settings),
        Vote(engine, settings),
    )
    return {method.name: method for method in methods}


METHODS = ("plain", "repair", "grammar", "vote")
"""Their names."""
