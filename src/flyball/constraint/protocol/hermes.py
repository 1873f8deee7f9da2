"""Tools in the words that Hermes and Qwen models were taught, held to them by a grammar."""

from __future__ import annotations

from flyball.constraint.grammar import call_grammar, plan_grammar
from flyball.constraint.grammar.layout import CallLayout
from flyball.constraint.protocol.choosing import MOST, answered, chosen, question
from flyball.constraint.protocol.conversation import HERMES, text_messages
from flyball.constraint.protocol.parsing import CallParser, TextParser
from flyball.constraint.protocol.plain import answer_prompt
from flyball.constraint.protocol.rendering import AnswerParser, Rendered
from flyball.core.encodable import as_text
from flyball.core.errors import ToolNotFound
from flyball.core.ids import new_id
from flyball.core.tools import ToolDefinition
from flyball.inference.offer import offer_of
from flyball.inference.request import Request

_SECTION = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{signatures}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> \
XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


class HermesProtocol:
    """Two steps: which tools, if any; then the calls, or the answer, each with nothing else in the prompt.

    A turn that may only be calls (`tool_choice` required, or an output tool and no text) skips the question,
    and so does one that may not call any.

    Small models do not see that they have done what was asked for, and call the same tool for ever. So one
    that has answered since the user last spoke is not on offer again, unless `again` is set, for models that
    know when to stop. Several calls of one tool in one turn are fine.
    """

    def __init__(self, layout: CallLayout = HERMES, *, again: bool = False) -> None:
        self._layout = layout
        self._again = again

    @property
    def tools(self) -> bool:
        """Yes."""
        return True

    def question(self, request: Request) -> Rendered | None:
        """Which tools are needed, where that is open."""
        tools = self._on_offer(request)
        return question(tools, request.messages) if tools and not offer_of(request).must else None

    def render(self, request: Request, choice: str | None = None) -> Rendered:
        """The turn: the calls that were chosen, or the answer.

        Raises:
            UserError: a part that is no text.
            GrammarUnsupported: a schema says what no grammar can.
            ToolNotFound: the one tool that must be called, or one that was chosen, is not there.
        """
        tools = self._on_offer(request)
        count = _calls(request, tools, choice)
        if not count:
            return answer_prompt(request)
        signatures = "\n".join([_signature(tool) for tool in tools])
        messages = text_messages(request.messages, self._layout, more=_SECTION.format(signatures=signatures))
        if choice is None:
            return Rendered(messages, call_grammar(tools, several=count, layout=self._layout))
        return Rendered(messages, plan_grammar(_plan(tools, choice), layout=self._layout))

    def parser(self, request: Request, first: int, choice: str | None = None) -> AnswerParser:
        """Calls, or text."""
        if _calls(request, self._on_offer(request), choice):
            return CallParser(first, self._layout, _call_id)
        return TextParser(first)

    def _on_offer(self, request: Request) -> tuple[ToolDefinition, ...]:
        tools = offer_of(request).tools
        if self._again:
            return tools
        left = tuple([tool for tool in tools if tool.name not in answered(request.messages)])
        # Where something must be called and nothing else is left, the same may be called again.
        return left or (tools if offer_of(request).must else ())


def _calls(request: Request, tools: tuple[ToolDefinition, ...], choice: str | None) -> int:
    """How many calls the turn may have; 0 is an answer in words."""
    if not tools:
        return 0
    if choice is not None:
        return len(chosen(choice))
    return MOST if offer_of(request).must else 0


def _plan(tools: tuple[ToolDefinition, ...], choice: str) -> list[ToolDefinition]:
    by_name = {tool.name: tool for tool in tools}
    strange = [name for name in chosen(choice) if name not in by_name]
    if strange:
        raise ToolNotFound(f"the tool {strange[0]!r} was chosen, and is not on offer", tool=strange[0])
    return [by_name[name] for name in chosen(choice)]


def _signature(tool: ToolDefinition) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return as_text({"type": "function", "function": function})


def _call_id() -> str:
    return f"call_{new_id()[-12:]}"
