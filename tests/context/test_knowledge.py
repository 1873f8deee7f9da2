"""Knowledge, the feature, and the knowledge base for tests: what may be asked of them."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Knowledge, KnowledgeBase, StaticKnowledgeBase
from flyball.core.errors import UserError


def test_a_static_knowledge_base_always_says_the_same_and_records() -> None:
    base = StaticKnowledgeBase("the library closes at nine")
    assert isinstance(base, KnowledgeBase)
    assert base.retrieve("the library?") == base.retrieve("") == "the library closes at nine"
    base.store("one")
    base.store("two")
    assert base.stored == ("one", "two")
    assert base.retrieve("one") == "the library closes at nine"
    assert StaticKnowledgeBase().retrieve("anything") == ""


class OnlyReads:
    def retrieve(self, query: str) -> str:
        return query


@pytest.mark.parametrize(
    ("base", "options", "what"),
    [
        (StaticKnowledgeBase(), {"when": "often"}, "when= is 'run' or 'turn' or 'compaction', not 'often'"),
        (
            StaticKnowledgeBase(),
            {"placement": "after"},
            "placement= is 'system' or 'before_user', not 'after'",
        ),
        (StaticKnowledgeBase(), {"on_error": "ignore"}, "on_error= is 'raise' or 'degrade', not 'ignore'"),
        (StaticKnowledgeBase(), {"placement": "before_user"}, "for 'before_user' say when='turn'"),
        (StaticKnowledgeBase(), {"prefix": 5}, "prefix= takes text"),
        (
            "a text",
            {},
            r"with retrieve\(\) and store\(\), or a context provider, with build\(\), not 'a text'",
        ),
        (OnlyReads(), {"auto_store": True}, r"auto_store needs a knowledge base with store\(\)"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
)
def test_options_that_cannot_be(base: Any, options: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        Knowledge(base, **options)


def test_what_only_reads_may_be_asked() -> None:
    knowledge = Knowledge(OnlyReads())  # pyright: ignore[reportArgumentType]
    assert (knowledge.name, knowledge.when, knowledge.prefix) == ("knowledge", "run", "[Knowledge Context] ")
    assert repr(knowledge).endswith("when='run')")
