"""InstructionSet: rules under a heading."""

from __future__ import annotations

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.messages import Message, system


class InstructionSet(Struct, frozen=True):
    """A named group of rules, which is told as a heading with a bullet for each.

    It is a part of a `SystemPrompt`, and a `PromptProvider` by itself.

    Raises:
        UserError: the name is no text or empty, or a rule is no text.
    """

    name: str
    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"a set of instructions has a name, not {self.name!r:.100}")
        if isinstance(self.rules, str) or not all(isinstance(rule, str) for rule in self.rules):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the rules of {self.name!r} are several texts, not {self.rules!r:.100}")

    def format(self) -> str:
        """The heading and the bullets. A rule of several lines is one bullet still."""
        lines = [f"- {rule.strip()}".replace("\n", "\n  ") for rule in self.rules]
        return "\n".join([f"## {self.name.strip()}", *lines])

    def build_system_prompt(self) -> Message:
        """See `PromptProvider`."""
        return system(self.format())
