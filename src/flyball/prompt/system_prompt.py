"""SystemPrompt: a system message made of a base, sets of instructions, and what a policy adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text
from flyball.core.tools import ToolDefinition
from flyball.prompt.instruction_set import InstructionSet
from flyball.prompt.policy import PromptPolicy

NO_POLICY = PromptPolicy()


class SystemPrompt(Struct, frozen=True):
    """A base prompt, then sets of instructions, with a blank line between them. It is a `PromptProvider`.

    In an agent, the policy has it also tell of the agent's tools and of the form of its answers.

    Args:
        base: what the model is told first.
        instructions: sets of instructions; plain text may stand among them.
        policy: how much it may say, and what it tells of the agent.

    Raises:
        UserError: something is not what it should be.
    """

    base: str = ""
    instructions: tuple[InstructionSet | str, ...] = ()
    policy: PromptPolicy = NO_POLICY
    tools: tuple[ToolDefinition, ...] = ()
    schema: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the base of a system prompt is text, not {self.base!r:.100}")
        given: Any = self.instructions
        if isinstance(given, str | InstructionSet) or not isinstance(given, Iterable):
            raise UserError(f"the instructions of a system prompt are a list of sets, not {given!r:.100}")
        for one in cast("Iterable[Any]", given):
            if not isinstance(one, str | InstructionSet):
                raise UserError(f"a system prompt takes InstructionSets and texts, not {one!r:.100}")
        if not isinstance(self.policy, PromptPolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the policy of a system prompt is a PromptPolicy, not {self.policy!r:.100}")

    def text(self) -> str:
        """What it says."""
        sets = [one if isinstance(one, str) else one.format() for one in self.instructions]
        return self.policy.joined([self.base, *sets, *self.policy.sections(self.tools, self.schema)])

    def build(self) -> Message:
        """The system message; without a part where it says nothing."""
        text = self.text()
        return Message(Role.SYSTEM, (Text(text),) if text else ())

    def build_system_prompt(self) -> Message:
        """See `PromptProvider`."""
        return self.build()

    def described(self, tools: Sequence[ToolDefinition], schema: dict[str, Any] | None) -> SystemPrompt:
        """The same for an agent with these tools, whose answers follow this schema."""
        return replace(self, tools=tuple(tools), schema=schema)
