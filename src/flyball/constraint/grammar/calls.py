"""The grammars of tool calls: one, several, or calls and a final answer as alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.canonical import literal
from flyball.constraint.grammar.compiler import Compiler
from flyball.constraint.grammar.layout import ANSWER, ARGUMENTS, NAME, CallLayout
from flyball.constraint.grammar.printing import print_grammar
from flyball.constraint.grammar.rulebook import RuleBook
from flyball.constraint.grammar.schemas import schema_key
from flyball.constraint.grammar.tree import Expr, Literal, Rules, choice, repeat, sequence
from flyball.constraint.grammar.words import text_without
from flyball.core.errors import GrammarUnsupported, UserError
from flyball.core.schema_check import check_schema
from flyball.core.tools import ToolDefinition

KEPT = 64


class FreeText(Enum):
    """An answer in words of the model's own."""

    FREE_TEXT = "free_text"


FREE_TEXT: Final = FreeText.FREE_TEXT
"""Any text in which nothing can be mistaken for a call; only the limit of tokens ends it."""

Answer = dict[str, Any] | FreeText | None
"""A final answer: JSON that follows a schema, free text, or none at all."""


def call_grammar(
    tools: Sequence[ToolDefinition],
    *,
    several: bool | int = False,
    least: int = 1,
    layout: CallLayout = CallLayout(),  # noqa: B008 - it is frozen
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
) -> str:
    """The grammar of one call, or of `least` to `several` calls, of these tools. See `turn_grammar`."""
    return turn_grammar(tools, None, several=several, least=least, layout=layout, bounds=bounds)


def plan_grammar(
    calls: Sequence[ToolDefinition],
    *,
    layout: CallLayout = CallLayout(),  # noqa: B008 - it is frozen
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
) -> str:
    """The grammar of these calls and no others, in this order; a tool may come more than once.

    Raises:
        GrammarUnsupported: a tool's parameters say what no grammar can; details `tool` names it.
        UserError: there are no calls.
    """
    if not calls:
        raise UserError("a plan without calls: name one tool at least")
    pairs = tuple((tool.name, schema_key(tool.parameters)) for tool in calls)
    return _printed_plan(pairs, layout, bounds)


def turn_grammar(
    tools: Sequence[ToolDefinition],
    answer: Answer,
    *,
    several: bool | int = False,
    least: int = 1,
    layout: CallLayout = CallLayout(),  # noqa: B008 - it is frozen
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
) -> str:
    """The grammar of a model's turn: calls of these tools, or the final answer.

    Arguments follow the tool's parameters as `schema_grammar` has it; a tool whose parameters are an object
    without properties takes none. Without an answer only calls count; without tools only the answer does.

    Raises:
        GrammarUnsupported: a schema says what no grammar can; for a tool's, details `tool` names it.
        UserError: there is nothing to choose from, a name comes twice, or calls look like answers.
    """
    most = (layout.most if several else 1) if isinstance(several, bool) else several
    if most < 1:
        raise UserError(f"several is {several}: at least one call has to be allowed")
    if not 1 <= least <= most:
        raise UserError(f"least is {least}: it lies between 1 and the {most} calls that are allowed")
    _check(tools, answer, layout)
    pairs = tuple((tool.name, schema_key(tool.parameters)) for tool in tools)
    final = schema_key(answer) if isinstance(answer, dict) else answer
    return _printed(pairs, final, (least, most), layout, bounds)


def _check(tools: Sequence[ToolDefinition], answer: Answer, layout: CallLayout) -> None:
    names = [tool.name for tool in tools]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"two tools are called {twice[0]!r}: rename one")
    if not tools and answer is None:
        raise UserError("a turn without tools and without an answer: give one of them")
    if tools and answer is not None:
        marked = bool(layout.answer.partition(ANSWER)[0].strip())
        json_like = isinstance(answer, dict) and not marked and layout.mark[:1] in '{["-0123456789tfn'
        if not layout.mark or json_like:
            raise UserError(
                f"an answer could be mistaken for a call, which begins with {layout.head!r}: put a marker "
                "before the calls (CallLayout.before) or before the answer (CallLayout.answer)"
            )


@lru_cache(maxsize=KEPT)
def _printed(
    tools: tuple[tuple[str, bytes], ...],
    answer: bytes | FreeText | None,
    count: tuple[int, int],
    layout: CallLayout,
    bounds: Bounds,
) -> str:
    return print_grammar(turn_rules(tools, answer, count, layout, bounds))


@lru_cache(maxsize=KEPT)
def _printed_plan(calls: tuple[tuple[str, bytes], ...], layout: CallLayout, bounds: Bounds) -> str:
    book = RuleBook()
    steps: list[Expr] = []
    for call in calls:
        steps += [_call((call,), layout, bounds, book), Literal(layout.between)]
    root = sequence(Literal(layout.before), *steps[:-1], Literal(layout.after))
    return print_grammar({"root": root, **book.rules})


def turn_rules(
    tools: tuple[tuple[str, bytes], ...],
    answer: bytes | FreeText | None,
    count: tuple[int, int],
    layout: CallLayout,
    bounds: Bounds,
) -> Rules:
    """The rules of a turn's grammar, `root` among them; parameters and answer are schemas as bytes.

    `count` is how many calls there are, at least and at most.
    """
    book = RuleBook()
    options: list[Expr] = []
    if tools:
        options.append(_calls(tools, count, layout, bounds, book))
    if answer is not None:
        options.append(_answer(answer, bool(tools), layout, bounds, book))
    if layout.answer_first:
        options.reverse()
    return {"root": choice(*options), **book.rules}


def _calls(
    tools: tuple[tuple[str, bytes], ...],
    count: tuple[int, int],
    layout: CallLayout,
    bounds: Bounds,
    book: RuleBook,
) -> Expr:
    call = _call(tools, layout, bounds, book)
    further = repeat(sequence(Literal(layout.between), call), count[0] - 1, count[1] - 1)
    return book.add("calls", sequence(Literal(layout.before), call, further, Literal(layout.after)))


def _call(tools: tuple[tuple[str, bytes], ...], layout: CallLayout, bounds: Bounds, book: RuleBook) -> Expr:
    """One call of one of these tools."""
    head, _, rest = layout.call.partition(NAME)
    middle, _, tail = rest.partition(ARGUMENTS)
    which = [
        sequence(Literal(literal(name).text[1:-1] + middle), _arguments(name, parameters, bounds, book))
        for name, parameters in tools
    ]
    return book.add("call", sequence(Literal(head), book.add("tool", choice(*which)), Literal(tail)))


def _arguments(name: str, parameters: bytes, bounds: Bounds, book: RuleBook) -> Expr:
    schema: dict[str, Any] = msgspec.json.decode(parameters)
    check_schema(schema)
    if not {"$ref", "allOf", "anyOf", "oneOf"} & schema.keys():
        schema = {"type": "object", **schema}
        if "additionalProperties" not in schema and "patternProperties" not in schema:
            schema = {"properties": {}, **schema}
    try:
        return Compiler(schema, bounds, book).document_expr(name)
    except GrammarUnsupported as error:
        error.details["tool"] = name
        raise


def _answer(
    answer: bytes | FreeText, beside_calls: bool, layout: CallLayout, bounds: Bounds, book: RuleBook
) -> Expr:
    head, _, tail = layout.answer.partition(ANSWER)
    if isinstance(answer, bytes):
        schema = msgspec.json.decode(answer)
        check_schema(schema)
        body = Compiler(schema, bounds, book).document_expr("answer")
    else:
        words = [layout.mark] if beside_calls else []
        if tail.strip():
            words.append(tail.strip().partition("\n")[0])
        body = text_without(tuple(words), book)
    return book.add("final", sequence(Literal(head), body, Literal(tail)))
