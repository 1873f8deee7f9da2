"""How tool calls and a final answer look in a model's text, as data."""

from __future__ import annotations

from msgspec import Struct

from flyball.core.errors import UserError

NAME = "$name"
ARGUMENTS = "$arguments"
ANSWER = "$answer"


class CallLayout(Struct, frozen=True):
    """The text around calls and around an answer. The default is what Hermes and Qwen models were taught.

    - `call`: one call, with `$name` and `$arguments` (a JSON object) in it, in this order
    - `before`, `between`, `after`: what stands before the calls, between them, behind them
    - `answer`: a final answer, with `$answer` in it: a marker before it, a mark of its end
    - `answer_first`: whether the answer is the first alternative; some samplers prefer it at a tie
    - `most`: how many calls there may be where several are allowed without a number

    Raises:
        UserError: a placeholder is missing, comes twice, or the arguments come before the name.
    """

    call: str = '<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>'
    before: str = ""
    between: str = "\n"
    after: str = ""
    answer: str = ANSWER
    answer_first: bool = False
    most: int = 8

    def __post_init__(self) -> None:
        for text, marks in ((self.call, (NAME, ARGUMENTS)), (self.answer, (ANSWER,))):
            for mark in marks:
                if text.count(mark) != 1:
                    raise UserError(
                        f"a layout needs {mark} once, and {text!r} has it {text.count(mark)} times"
                    )
        if self.call.index(NAME) > self.call.index(ARGUMENTS):
            raise UserError(f"the name comes before the arguments in a call, unlike in {self.call!r}")
        if self.most < 1:
            raise UserError(f"CallLayout.most is {self.most}: it has to be at least 1")

    @property
    def head(self) -> str:
        """What stands before the first call's name."""
        return self.before + self.call.partition(NAME)[0]

    @property
    def mark(self) -> str:
        """What tells a call: the head's first line. Free text has it nowhere in it."""
        first, _, _ = self.head.strip().partition("\n")
        return first
