"""GrammarDefinition: a grammar with a name, checked when it is made; what a decoder is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from flyball.constraint.grammar.checking import check_grammar
from flyball.constraint.grammar.matching import matcher
from flyball.constraint.grammar.schemas import schema_grammar
from flyball.core.errors import GrammarMalformed, GrammarNotFound, GrammarRejected, UserError


@runtime_checkable
class DecoderConstraint(Protocol):
    """What holds a decoder while it writes, and tells afterwards whether a text was written so."""

    @property
    def grammar(self) -> str:
        """The grammar, as GBNF."""
        ...

    def require(self, text: str) -> None:
        """Do nothing where a text follows it, else raise GrammarRejected."""
        ...


class GrammarDefinition(Struct, frozen=True):
    """A GBNF grammar and its name. It stands in `Agent(grammar=...)`.

    Raises:
        GrammarWithoutRoot: it is empty, or has no rule whose name is exactly `root`.
        GrammarMalformed: it is no grammar that a decoder could be held to.
        UserError: the name or the grammar is no text, or the name is empty.
    """

    name: str
    grammar: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not isinstance(self.grammar, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(
                f"a grammar has a name and a text, not {self.name!r:.100} and {self.grammar!r:.100}"
            )
        try:
            check_grammar(self.grammar)
        except GrammarMalformed as error:
            raise type(error)(
                f"the grammar {self.name!r}: {error.message}", **error.details, grammar=self.name
            ) from None

    @classmethod
    def from_file(cls, path: str | Path, name: str | None = None) -> GrammarDefinition:
        """The grammar that a file holds, by the file's name unless another is given.

        Raises:
            GrammarNotFound: the file is not there.
            UserError: it cannot be read.
            GrammarMalformed: it holds none.
        """
        file = Path(path)
        try:
            text = file.read_text("utf-8-sig")
        except FileNotFoundError as error:
            raise GrammarNotFound(f"{file}: there is no such file", path=str(file)) from error
        except OSError as error:
            raise UserError(
                f"{file}: it cannot be read: {error.strerror or error}", path=str(file)
            ) from error
        except UnicodeDecodeError as error:
            raise GrammarMalformed(f"{file}: it holds no text: {error}", path=str(file)) from error
        try:
            check_grammar(text)
        except GrammarMalformed as error:
            raise type(error)(f"{file}: {error.message}", **error.details, path=str(file)) from error
        return cls(name or file.stem or str(file), text)

    @classmethod
    def from_schema(cls, schema: dict[str, Any], name: str = "schema") -> GrammarDefinition:
        """The grammar of a JSON Schema.

        Raises:
            GrammarUnsupported: the schema says what no grammar can.
            SchemaMalformed: it is no schema.
        """
        return cls(name, schema_grammar(schema))

    def accepts(self, text: str) -> bool:
        """Whether a text follows the grammar, to its end.

        Raises:
            GrammarUnsupported: that cannot be told: it speaks of a model's tokens, or is too ambiguous.
        """
        return matcher(self.grammar).mismatch(text) is None

    def require(self, text: str) -> None:
        """Do nothing where a text follows the grammar, to its end.

        Raises:
            GrammarRejected: it does not; details `position`, `line` and `column` say where.
            GrammarUnsupported: that cannot be told: see `accepts`.
        """
        at = matcher(self.grammar).mismatch(text)
        if at is None:
            return
        line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
        what = "it ends too early" if at == len(text) else f"{text[at : at + 20]!r} may not stand there"
        raise GrammarRejected(
            f"the answer does not follow the grammar {self.name!r}: line {line}, column {column}: {what}",
            grammar=self.name,
            position=at,
            line=line,
            column=column,
        )


GrammarConstraint: TypeAlias = GrammarDefinition
"""pagantic's name for a grammar as a decoder's constraint."""
