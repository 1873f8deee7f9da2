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
_RULES = (
    "You choose the tools that a request needs. Answer with the name of the tool, with several names "
    f"separated by commas if the request needs several calls, or with {NONE} if no tool does what is "
    "asked for."
)
_ELSEWHERE = """- get_balance: Tell how much money is in an account.
- transfer_money: Send money to somebody.
- block_card: Block a bank card."""
_THERE = (
    ("I lost my card!", "block_card"),
    ("What is inflation?", NONE),
    ("Hi, can you hear me?", NONE),
    ("Pay Lisa 15 euros and tell me what is left.", "transfer_money, get_balance"),
    ("Thanks, that's all.", NONE),
    ("Can I afford a new bike?", "get_balance"),
    ("Send 5 euros to Tim and 30 to Ben.", "transfer_money, transfer_money"),
    ("What is the difference between a credit card and a debit card?", NONE),
    ("I still owe Kim 12 euros.", "transfer_money"),
    ("Nobody should be able to pay with my card any more.", "block_card"),
    ("Has my salary come?", "get_balance"),
)
"""Another place's tools: that a wish may be put in other words, or need several calls, is shown there. Shown
with the tools that are really on offer, it would be chosen too often."""
_CHATTER = (
    "Hello!",
    "What is the capital of Spain?",
    "Thanks a lot!",
    "Tell me a story about a dragon.",
    "What is your favourite colour?",
)
_LAST = "Good evening"
_BIAS = -3.5
"""Against "none" at first: the examples have more of it than of any tool. Set on the open control tasks."""
_REMEMBERED = 3
"""How many exchanges of the conversation it is shown: "And in Oslo?" means nothing by itself."""
_FEWEST = 3
"""How many examples of chatter there are at least: one tool alone would look as if it were always right."""
_TWICE = 6
"""Up to how many tools there are two examples of each: more make a long prompt."""


def question(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> Rendered:
    """What the model is asked before a turn."""
    asked = [{"role": "system", "content": _RULES}]
    for said, names in [*_box(_ELSEWHERE), *_THERE, *_box(_listed(tools)), *_examples(tools)]:
        asked += [{"role": "user", "content": said}, {"role": "assistant", "content": names}]
    for words, names in _exchanges(messages)[-_REMEMBERED:]:
        asked.append({"role": "user", "content": words})
        asked.append({"role": "assistant", "content": _SEPARATOR.join(names) or NONE})
    asked.pop()  # the last one is what is asked for
    # A token is a byte at least, so an answer that the grammar allows is never cut.
    longest = max([len(tool.name.encode()) for tool in tools]) + len(_SEPARATOR)
    body: dict[str, Any] = {"temperature": 0.0, "max_tokens": max(longest, len(NONE)) * MOST}
    if not answered(messages):
        body["logit_bias"] = [[NONE, _BIAS]]
    return Rendered(tuple(asked), _grammar(tools), body)


def _box(listed: str) -> list[tuple[str, str]]:
    return [(f"The tools are now:\n{listed}", "Ready.")]


def _listed(tools: Sequence[ToolDefinition]) -> str:
    return "\n".join([f"- {tool.name}: {_line(tool.description)}" for tool in tools])


def _examples(tools: Sequence[ToolDefinition]) -> list[tuple[str, str]]:
    """What one says to have each tool, with chatter in between."""
    examples: list[tuple[str, str]] = []
    for number in range(max(len(tools), _FEWEST)):
        if number < len(_CHATTER):
            examples.append((_CHATTER[number], NONE))
        if number < len(tools):
            examples.append((f"I want you to {_wish(tools[number].description)}", tools[number].name))
    if len(tools) <= _TWICE:
        examples += [(f"Can you {_wish(tool.description)}?", tool.name) for tool in tools]
    return [*examples, (_LAST, NONE)]


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
