"""Whether an answer follows the grammar that its decoder was held to, found out after it was written.

A decoder that is held writes nothing else. But it may be cut off, an engine may take a grammar for a wish,
and middleware may answer in its place: what an agent with a grammar gives is looked at, not only asked for.
"""

from __future__ import annotations

import json
from functools import lru_cache

from flyball.constraint.grammar import DecoderConstraint, GrammarDefinition
from flyball.constraint.grammar.matching import KEPT
from flyball.core.errors import GrammarRejected, GrammarUnsupported
from flyball.core.spec import OutputSpec
from flyball.orchestrate.mending import mended_json


def as_it_follows(constraint: DecoderConstraint, answer: str, *, mend: bool) -> tuple[str, bool]:
    """An answer as it follows a grammar, and whether it was put right for that.

    With `mend`, JSON that was cut off or wrapped in prose may be put right; what comes of it must follow the
    grammar in one of the ways to write it.

    Raises:
        GrammarRejected: it does not follow it.
        GrammarUnsupported: that cannot be told.
    """
    try:
        constraint.require(answer)
    except GrammarRejected:
        mended = mended_json(answer) if mend else None
        if mended is None or not _in_some_layout(constraint, mended):
            raise
        return mended, True
    return answer, False


def require_followed(output: OutputSpec, answer: str) -> None:
    """Do nothing where an answer follows its output's grammar, or would once its JSON is put right.

    Where nobody but the model can tell (the grammar speaks of its tokens), or only by looking for too long,
    the decoder is believed.

    Raises:
        GrammarRejected: it does not follow it.
    """
    assert output.grammar is not None, "asked only where there is one"
    try:
        as_it_follows(_of(output.grammar), answer, mend=output.repair and output.schema is not None)
    except GrammarUnsupported:
        return


@lru_cache(maxsize=KEPT)
def _of(grammar: str) -> GrammarDefinition:
    """The grammar of a spec, which has no name; kept, as its matcher is."""
    return GrammarDefinition("grammar", grammar)


def _in_some_layout(constraint: DecoderConstraint, mended: str) -> bool:
    for text in (mended, json.dumps(json.loads(mended), ensure_ascii=False)):
        try:
            constraint.require(text)
        except GrammarRejected:
            continue
        return True
    return False
