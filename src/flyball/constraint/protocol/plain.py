"""Text only: no tools."""

from __future__ import annotations

from flyball.constraint.grammar import check_grammar, schema_grammar
from flyball.constraint.protocol.conversation import plain_messages
from flyball.constraint.protocol.form import form
from flyball.constraint.protocol.parsing import TextParser
from flyball.constraint.protocol.rendering import AnswerParser, Rendered
from flyball.core.errors import UserError
from flyball.inference.request import Request

_FILLED = """Answer with one JSON object of a given form. For example, the form
{"owner": <string: last name of the owner>, "animal": <string: what kind of animal, without its size>, \
"weight": <number: weight in kg>, "name": <string: name of the animal>, \
"vaccinated": <boolean: whether it is vaccinated>}
and the text
Mr Berg's little dog Rex weighs 4.5 kg and has had all its vaccinations.
give
{"owner": "Berg", "animal": "dog", "weight": 4.5, "name": "Rex", "vaccinated": true}

the form
{"name": <string: name of the model>, "what": <string: what it is, without the material>, \
"material": <string: the material>, "extras": <list of string: what comes with it>, \
"price": <number: the price>}
and the text
Table Fjell 20, made of oak, with two benches and a lamp (new), 349 EUR.
give
{"name": "Fjell 20", "what": "table", "material": "oak", "extras": ["benches", "lamp"], "price": 349}

Now the form is:
"""
"""What goes before a form. The examples show that a value has no words that were not asked for."""
_BRIEF = [['"', 2.0], ['",', 2.0], ['"}', 2.0], ['"]', 2.0], ['"],', 2.0]]
"""Strings end a little sooner: small models copy too much of a text. Set on the open control tasks."""


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
    """The request for a final answer: text, or JSON, whose schema the model reads too, as a form.

    A grammar tells the decoder what is possible; only the schema's own words tell the model what is meant.
    """
    output = request.output
    if output is None or request.grammar:
        return Rendered(plain_messages(request.messages), grammar_of(request))
    messages = plain_messages(request.messages, more=_FILLED + form(output.schema))
    return Rendered(messages, grammar_of(request), {"logit_bias": _BRIEF})


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
