"""The grammar of a schema, made once and kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.compiler import Compiler
from flyball.constraint.grammar.printing import print_grammar
from flyball.constraint.grammar.rulebook import RuleBook
from flyball.constraint.grammar.tree import Rules
from flyball.core.errors import SchemaMalformed
from flyball.core.schema_check import check_schema

KEPT = 256


def schema_grammar(schema: dict[str, Any], *, bounds: Bounds = Bounds()) -> str:  # noqa: B008 - it is frozen
    """The GBNF grammar of the JSON texts that follow a schema, with the rule `root`.

    The texts are those that `json.dumps(value, ensure_ascii=False)` writes, keys in the schema's order.
    Whatever the grammar generates follows the schema; whatever follows it in that form and within `bounds`
    is generated.

    Raises:
        GrammarUnsupported: the schema says what no grammar can; nothing is left out silently.
        SchemaMalformed: it is no JSON Schema.
    """
    return _printed(schema_key(schema), bounds)


def schema_key(schema: dict[str, Any]) -> bytes:
    """The schema as bytes: what equal schemas, with keys in the same order, have in common."""
    try:
        return msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SchemaMalformed(f"no JSON: {error}") from error


@lru_cache(maxsize=KEPT)
def _printed(key: bytes, bounds: Bounds) -> str:
    return print_grammar(schema_rules(key, bounds))


def schema_rules(key: bytes, bounds: Bounds) -> Rules:
    """The rules of a schema's grammar, `root` among them."""
    schema = msgspec.json.decode(key)
    check_schema(schema)
    book = RuleBook()
    root = Compiler(schema, bounds, book).document_expr()
    return {"root": root, **book.rules}
