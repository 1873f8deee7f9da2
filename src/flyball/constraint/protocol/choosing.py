"""The question before a turn: which tools does it need, if any?

A small model that is asked to call a tool or to answer hardly ever just answers. Asked for nothing but names,
with examples of both, it chooses well. The examples are made from the tools' own descriptions; what stands
before the conversation's last words is the same in every turn, so it is read once and then cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.constraint.protocol.rendering import Rendered
from flyball.core.messages import Message, ResultKind, Role, ToolResult
from flyball.core.tools import ToolDefinition

NONE = "none"
MOST = 4
"""How many calls a turn may have."""
_SEPARATOR = ", "
_CHATTER = (
    "Hello!",
    "What is the capital of Spain?",
    "Thanks a lot!",
    "Tell me a story about a dragon.",
    "What is your favourite colour?",
)
_LAST = "Good evening"
_BIAS = -2.0
"""Against "none" at first: the examples have more of it than of any tool. Set on the open control tasks."""
_REMEMBERED = 3
"""How many exchanges of the conversation it is shown: "And in Oslo?" means nothing by itself."""
_FEWEST = 3
"""How many examples of chatter there are at least: one tool alone would look as if it were always right."""


def question(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> Rendered:
    """What the model is asked before a turn."""
    listed = "\n".join([f"- {tool.name}: {_line(tool.description)}" for tool in tools])
    rules = (
        f"You choose the tools that a request needs. The tools are:\n{listed}\n"
        "Answer with the name of the tool, with several names separated by commas if the request needs "
        f"several calls, or with {NONE} if no tool does what is asked for."
    )
    turns: list[tuple[str, str]] = []
    for number in range(max(len(tools), _FEWEST)):
        if number < len(_CHATTER):
            turns.append((_CHATTER[number], NONE))
        if number < len(tools):
            turns.append((f"Please {_wish(tools[number].description)}.", tools[number].name))
    turns.append((_LAST, NONE))
    asked = [{"role": "system", "content": rules}]
    for wish, names in turns:
        asked += [{"role": "user", "content": wish}, {"role": "assistant", "content": names}]
    for words, names in _exchanges(messages)[-_REMEMBERED:]:
        asked.append({"role": "user", "content": words})
        asked.append({"role": "assistant", "content": _SEPARATOR.join(names) or NONE})
    asked.pop()  # the last one is what is asked for
    body: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16 * MOST}
    if not answered(messages):
        body["logit_bias"] = [[NONE, _BIAS]]
    return Rendered(tuple(asked), _grammar(tools), body)


def chosen(choice: str) -> tuple[str, ...]:
    """The names in the answer to the question; none where no tool is needed."""
    return () if choice.strip() == NONE else tuple(choice.strip().split(_SEPARATOR))


def _grammar(tools: Sequence[ToolDefinition]) -> str:
    names = " | ".join([_quoted(tool.name) for tool in tools])
    return f'root ::= "{NONE}" | name ("{_SEPARATOR}" name){{0,{MOST - 1}}}\nname ::= {names}\n'


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _line(description: str) -> str:
    return " ".join(description.split())


def _wish(description: str) -> str:
    """A description's first sentence, as one says it in the middle of a sentence."""
    first = _line(description).partition(". ")[0].rstrip(".") or "do that"
    return first[:1].lower() + first[1:]


def answered(messages: Sequence[Message]) -> frozenset[str]:
    """The tools that have answered since the user last spoke; one that failed has not."""
    done: set[str] = set()
    for message in messages:
        if message.role is Role.USER and message.text:
            done = set()
        elif message.role is Role.TOOL:
            done |= {part.name for part in message.tool_results if _is_answer(part)}
    return frozenset(done)


def _is_answer(result: ToolResult) -> bool:
    return not result.is_error and result.status is ResultKind.RETURN


def _exchanges(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """What the user said each time, and which tools were called for it."""
    exchanges: list[tuple[str, list[str]]] = []
    for message in messages:
        if message.role is Role.USER and message.text:
            exchanges.append((message.text, []))
        elif message.role is Role.ASSISTANT and exchanges:
            exchanges[-1][1].extend([call.name for call in message.tool_calls])
    return exchanges or [("", [])]
