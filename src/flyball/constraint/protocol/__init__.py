"""How a model that only writes text is told of tools and schemas, and how its text becomes an answer again.

An engine whose model takes no tools of its own leaves that to a `ToolProtocol`: what tools look like to the
model, how it spells a call, which grammar holds it to that. Rules: pure functions of the request; the grammar
allows nothing that the parser could not read; what a model is given can be read with `render` alone.
"""

from flyball.constraint.protocol.conversation import text_messages
from flyball.constraint.protocol.hermes import HermesProtocol
from flyball.constraint.protocol.parsing import CallParser, TextParser
from flyball.constraint.protocol.plain import PlainProtocol, grammar_of
from flyball.constraint.protocol.rendering import AnswerParser, Rendered, ToolProtocol

__all__ = [
    "AnswerParser",
    "CallParser",
    "HermesProtocol",
    "PlainProtocol",
    "Rendered",
    "TextParser",
    "ToolProtocol",
    "grammar_of",
    "text_messages",
]
