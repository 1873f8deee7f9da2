"""Leaves: what is run in a flow, agents and functions. How users write them down is in `steps`."""

from __future__ import annotations

import asyncio
from typing import Any

from flyball.core.encodable import as_text, to_json
from flyball.core.errors import CancelledTimeout
from flyball.core.flow import FlowNode
from flyball.core.messages import Message
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import Asked, Doing
from flyball.orchestrate.flow.filters import HistoryFilter, filtered
from flyball.orchestrate.flow.functions import Function, function_of
from flyball.orchestrate.flow.parts import Done, Part
from flyball.orchestrate.flow.retrying import Retries, retry_rule, worth_another_try
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.output_plan import plan_of, union
from flyball.orchestrate.schema_output import SchemaOutput


class AgentLeaf(Part):
    """Runs an agent, in a loop of its own under the flow."""

    agent: Agent[Any, Any]
    prompt: Any
    history: HistoryFilter | bool
    retries: Retries
    timeout: float | None

    def runs(self) -> Agent[Any, Any]:
        """See `Part.runs`."""
        return self.agent

    @property
    def takes(self) -> Any:
        """See `Part.takes`."""
        return self.prompt.takes if isinstance(self.prompt, Function) else Any

    @property
    def gives(self) -> Values:
        """See `Part.gives`."""
        return Values(_output_type(self.agent.config.output))

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return FlowNode(self.kind, self.name, **retry_rule(self.retries))

    def worth_another_try(self, error: Exception) -> bool:
        """See `Part.worth_another_try`."""
        return worth_another_try(self.retries, error)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""

        async def asked() -> Asked:
            messages: tuple[Message, ...] = ()
            if self.history is not False:
                messages = await doing.conversation()
            if messages and not isinstance(self.history, bool):
                messages = await filtered(self.history, doing.context, messages)
            if isinstance(self.prompt, Function):
                return await self.prompt(doing.context, value), messages
            return self.prompt or as_text(to_json(value, "the prompt")), messages

        options = {} if self.timeout is None else {"timeout": self.timeout}
        result = await doing.run(self.agent, asked, **options)
        return Done(result.output, result.loop_id)


class FunctionLeaf(Part):
    """Calls a function."""

    function: Function
    timeout: float | None

    @property
    def takes(self) -> Any:
        """See `Part.takes`."""
        return self.function.takes

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return Done(await self.function(doing.context, value))
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CancelledTimeout(
                f"it took longer than its time-out of {self.timeout} s", timeout=self.timeout, limit="timeout"
            ) from error


class Test(FunctionLeaf):
    """A function that decides. Whatever it gives, what is recorded is whether that is true."""

    kind = "test"
    timeout = None

    def __init__(self, function: Any, what: str) -> None:
        self.function = function_of(function, what)
        self.name = self.function.name

    def __repr__(self) -> str:
        return f"Test({self.function.call!r})"

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        return Done(bool((await super().perform(doing, value)).output))


def _output_type(output: Any) -> Any:
    """The type of what an agent gives."""
    plan = plan_of(output)
    kinds = [Any if isinstance(member.kind, SchemaOutput) else member.kind for member in plan.members]
    if plan.text:
        kinds.append(str)
    if plan.function is not None:
        kinds.append(function_of(plan.function, "TextOutput").gives)
    return Any if Any in kinds else union(kinds)
