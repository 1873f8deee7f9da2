"""Text only: no tools."""

from __future__ import annotations

from flyball.constraint.grammar import check_grammar, schema_grammar
from flyball.constraint.protocol.conversation import plain_messages
from flyball.constraint.protocol.parsing import TextParser
from flyball.constraint.protocol.rendering import AnswerParser, Rendered
from flyball.core.encodable import as_text
from flyball.core.errors import UserError
from flyball.inference.request import Request


class PlainProtocol:
    """Text only: no tools. A grammar is passed on, an output schema becomes one."""

    @property
    def tools(self) -> bool:
        """No."""
        return False

    def question(self, request: Request) -> Rendered | None:
        """Nothing."""
        del request
        return None

    def render(self, request: Request, choice: str | None = None) -> Rendered:
        """The messages as text.

        Raises:
            UserError: there are tools, or parts that are no text.
            GrammarUnsupported: the schema says what no grammar can.
        """
        del choice
        if request.tools:
            raise UserError(
                f"this engine has no protocol for tools, and the request has {len(request.tools)}: give it "
                "one with `protocol=`",
                tools=[tool.name for tool in request.tools],
            )
        return answer_prompt(request)

    def parser(self, request: Request, first: int, choice: str | None = None) -> AnswerParser:
        """All of it is one text."""
        del request, choice
        return TextParser(first)


def answer_prompt(request: Request) -> Rendered:
    """The request for a final answer: text, or JSON, whose schema the model reads too.

    A grammar tells the decoder what is possible; only the schema's own words tell the model what is meant.
    """
    output = request.output
    more = ""
    if output is not None and not request.grammar:
        more = f"Answer with one JSON object that follows this schema:\n{as_text(output.schema)}"
    return Rendered(plain_messages(request.messages, more=more), grammar_of(request))


def grammar_of(request: Request) -> str | None:
    """The grammar that the answer's text must follow: the request's own, or the one of its schema.

    Raises:
        GrammarMalformed: the request's own is none; details have the line and the column.
        GrammarUnsupported: the schema says what no grammar can.
    """
    if request.grammar:
        # Another kind (`%llguidance`) is refused too: one that is broken llama.cpp drops, in silence.
        check_grammar(request.grammar)
        return request.grammar
    return None if request.output is None else schema_grammar(request.output.schema)
