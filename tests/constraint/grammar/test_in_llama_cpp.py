"""Printed grammars in llama.cpp itself: its parser takes them, and its sampler cannot break them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flyball.constraint.grammar import FREE_TEXT, Bounds, CallLayout, schema_grammar, turn_grammar
from flyball.constraint.validation import validate
from flyball.core.tools import ToolDefinition
from flyball.engines.llama_cpp.child import held
from flyball.models.gguf import silent_tokens
from tests.constraint.grammar.real_tools import TOOLS
from tests.constraint.grammar.schemas import Pair, documents
from tests.constraint.grammar.tiny_model import write_tiny_model

Write = Callable[[str, int], str | None]
SMALL = Bounds(max_string=12, max_key=6, max_items=3, max_properties=2, max_depth=2)
MOST_TOKENS = 3_000


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """What the model writes under a grammar with a seed; None if it came to no end."""
    xllamacpp: Any = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(write_tiny_model(Path(tmp_path_factory.mktemp("model")) / "tiny.gguf"))
    params.n_ctx, params.n_parallel, params.verbosity, params.warmup = 4096, 1, 0, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys = ["not open to others"]
    server = xllamacpp.Server(params)
    silent = silent_tokens(Path(params.model.path))

    def ask(grammar: str, seed: int) -> str | None:
        body = {"prompt": "x", "max_tokens": MOST_TOKENS, "temperature": 1, "seed": seed, "grammar": grammar}
        answer = server.handle_completions(held(body, silent))
        assert "choices" in answer, (answer, grammar)
        chosen = answer["choices"][0]
        # llama.cpp takes overlong UTF-8 for the character that it stands for, and a grammar speaks of
        # characters. No trained model writes it; random weights do. It comes back as U+FFFD.
        ended = chosen["finish_reason"] == "stop" and "\ufffd" not in chosen["text"]
        return chosen["text"] if ended else None

    return ask


@pytest.mark.parametrize("name", TOOLS)
def test_real_tools(name: str, write: Write) -> None:
    schema = TOOLS[name][0]
    grammar = schema_grammar(schema, bounds=SMALL)
    ended = [text for seed in range(6) if (text := write(grammar, seed)) is not None]
    assert ended
    for text in ended:
        assert validate(schema, json.loads(text)) == [], text


@pytest.mark.parametrize("name", TOOLS)
def test_the_usual_bounds_are_taken(name: str, write: Write) -> None:
    schema = TOOLS[name][0]
    text = write(schema_grammar(schema), 1)
    assert text is None or validate(schema, json.loads(text)) == [], text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents(), seed=st.integers(0, 2**31))
def test_any_schema(document: Pair, seed: int, write: Write) -> None:
    schema = document[0]
    text = write(schema_grammar(schema, bounds=SMALL), seed)
    if text is not None:
        assert validate(schema, json.loads(text)) == [], text


def test_a_token_that_is_written_as_nothing_is_no_letter(write: Write) -> None:
    # With this seed the model would write `<s>` in the string, which the grammar takes for three letters.
    schema = {"type": "array", "prefixItems": [{"type": "string", "minLength": 3, "maxLength": 5}]}
    text = write(schema_grammar({**schema, "items": False}, bounds=SMALL), 8857)
    assert text is None or validate(schema, json.loads(text)) == [], text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 2_500, "maxLength": 2_600},
        {"type": "string", "maxLength": 1_000_000},
        {"type": "array", "items": {"const": 1}, "minItems": 5_000, "maxItems": 200_000},
        {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}, "maxItems": 1_999},
            "maxItems": 1_999,
        },
    ],
    ids=["a long string", "a very long string", "a long array", "counts within counts"],
)
def test_large_counts_are_taken(schema: dict[str, Any], write: Write) -> None:
    write(schema_grammar(schema), 1)


ANSWERS: dict[str, Any] = {
    "typed": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "free": FREE_TEXT,
    "none": None,
}


@pytest.mark.parametrize(
    "layout", [CallLayout(), CallLayout(answer="<answer>$answer</answer>", answer_first=True)]
)
@pytest.mark.parametrize("answer", ANSWERS)
def test_turns(answer: str, layout: CallLayout, write: Write) -> None:
    tools = [ToolDefinition(name, schema) for name, (schema, _) in TOOLS.items()]
    grammar = turn_grammar(tools, ANSWERS[answer], several=2, layout=layout, bounds=SMALL)
    for seed in range(5):
        text = write(grammar, seed)
        if text is not None and text.startswith("<tool_call>"):
            for call in text.removesuffix("\n</tool_call>").split("\n</tool_call>\n"):
                read = json.loads(call.removeprefix("<tool_call>\n"))
                assert validate(TOOLS[read["name"]][0], read["arguments"]) == []
        elif text is not None:
            assert "<tool_call>" not in text
            body = text.removeprefix("<answer>").removesuffix("</answer>")
            assert answer == "free" or isinstance(json.loads(body)["n"], int)
