"""The pipeline: six stages in their order, each only where it is needed, and the exact code of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import (
    Agent,
    ConstraintPipeline,
    ConstraintStage,
    GrammarDefinition,
    Mode,
    ModelSemanticValidator,
    Rule,
    ValidationReport,
    ValidationResult,
    Verdict,
)
from flyball.core.errors import (
    EnumUnrecognized,
    FlyballError,
    GrammarMalformed,
    GrammarRejected,
    JSONInvalid,
    RuleFailed,
    SchemaInvalid,
    SchemaMalformed,
    SchemaRequired,
    SemanticFailed,
    UserError,
)
from flyball.testing import ScriptedEngine, tool_call
from tests.orchestrate.models import Script

MOOD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sentiment": {"enum": ["positive", "negative"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["sentiment", "confidence"],
    "additionalProperties": False,
}
GOOD = '{"sentiment": "positive", "confidence": 0.95}'
SURE = [Rule("sure", lambda output: output["confidence"] > 0.5), Rule("told", lambda output: None)]
DECODER, REPAIR, ENUMS, SCHEMA, RULES, SEMANTIC = ConstraintStage


class Judge:
    def __init__(self, *, valid: bool = True) -> None:
        self.valid = valid
        self.asked: list[tuple[Any, str]] = []

    def validate(self, output: Any, intent: str) -> Verdict:
        self.asked.append((output, intent))
        return Verdict(self.valid, "so it seems")


def whole(**options: Any) -> ConstraintPipeline:
    given: dict[str, Any] = {
        "schema": MOOD,
        "grammar": GrammarDefinition.from_schema(MOOD),
        "rules": SURE,
        "semantic": Judge(),
    }
    return ConstraintPipeline("structured", **(given | options))


def test_the_stages_stand_in_their_order() -> None:
    assert [str(stage) for stage in ConstraintStage] == [
        "decoder_constraint",
        "repair",
        "enum_normalisation",
        "schema",
        "rules",
        "semantic",
    ]
    assert whole().stages == tuple(ConstraintStage)
    assert whole(repair=False).stages == (DECODER, SCHEMA, RULES, SEMANTIC)
    assert ConstraintPipeline("chat").stages == ()
    assert ConstraintPipeline("structured", schema=MOOD).stages == (REPAIR, ENUMS, SCHEMA)


async def test_each_stage_is_run_only_where_it_is_needed() -> None:
    found = await whole().check(GOOD, "How is it?")
    assert found.value == {"sentiment": "positive", "confidence": 0.95}
    assert found.stages == (DECODER, SCHEMA, RULES, SEMANTIC)
    assert found.report == ValidationReport(passed=4)
    found = await whole(grammar=None).check("```json\n{'sentiment': 'Positive', 'confidence': 0.9\n```")
    assert found.stages == (REPAIR, ENUMS, SCHEMA, RULES, SEMANTIC)
    assert found.value == {"sentiment": "positive", "confidence": 0.9}
    assert found.report == ValidationReport(
        passed=5,
        repairs=2,
        warnings=(
            "the answer was put right: json",
            'the answer was put right: enum sentiment: "Positive" is taken for "positive"',
        ),
    )


CUT = GOOD[:-1]
FAILS: list[tuple[str, dict[str, Any], str, type[FlyballError], str, tuple[ConstraintStage, ...]]] = [
    ("grammar", {"repair": False}, CUT, GrammarRejected, "CONSTRAINT_GRAMMAR_REJECTED", (DECODER,)),
    ("grammar, not mended", {}, "fine", GrammarRejected, "CONSTRAINT_GRAMMAR_REJECTED", (DECODER,)),
    ("json", {"grammar": None}, "fine", JSONInvalid, "CONSTRAINT_JSON_INVALID", (REPAIR,)),
    (
        "json, not to be mended",
        {"grammar": None, "repair": False},
        CUT,
        JSONInvalid,
        "CONSTRAINT_JSON_INVALID",
        (SCHEMA,),
    ),
    (
        "enum",
        {"grammar": None},
        '{"sentiment": "mixed", "confidence": 1}',
        EnumUnrecognized,
        "CONSTRAINT_ENUM_UNRECOGNIZED",
        (ENUMS,),
    ),
    (
        "enum, not to be mended",
        {"grammar": None, "repair": False},
        '{"sentiment": "Positive", "confidence": 1}',
        EnumUnrecognized,
        "CONSTRAINT_ENUM_UNRECOGNIZED",
        (SCHEMA,),
    ),
    (
        "schema",
        {"grammar": None},
        '{"sentiment": "positive", "confidence": 7}',
        SchemaInvalid,
        "CONSTRAINT_SCHEMA_INVALID",
        (SCHEMA,),
    ),
    (
        "rules",
        {},
        '{"sentiment": "positive", "confidence": 0.25}',
        RuleFailed,
        "VALIDATION_RULE_FAILED",
        (DECODER, SCHEMA, RULES),
    ),
    (
        "semantic",
        {"semantic": Judge(valid=False)},
        GOOD,
        SemanticFailed,
        "VALIDATION_SEMANTIC_FAILED",
        (DECODER, SCHEMA, RULES, SEMANTIC),
    ),
]


@pytest.mark.parametrize(
    ("options", "answer", "error", "code", "stages"),
    [row[1:] for row in FAILS],
    ids=[row[0] for row in FAILS],
)
async def test_each_stage_fails_with_its_own_code(
    options: dict[str, Any], answer: str, error: type[Any], code: str, stages: tuple[ConstraintStage, ...]
) -> None:
    pipeline = whole(**options)
    found = await pipeline.run(answer, "How is it?")
    assert not found.valid
    assert found.stages == stages
    assert (found.report.failed, found.report.passed) == (1, len(stages) - 1)
    assert found.report.violations
    with pytest.raises(error) as raised:
        await pipeline.check(answer, "How is it?")
    assert raised.value.code == code


async def test_what_comes_after_a_failure_is_not_asked() -> None:
    judge = Judge()
    await whole(semantic=judge).run('{"sentiment": "positive", "confidence": 0.25}')
    await whole(semantic=judge, grammar=None).run("fine")
    assert judge.asked == []
    await whole(semantic=judge).run(GOOD, "How is it?")
    assert judge.asked == [(json.loads(GOOD), "How is it?")]


async def test_an_answer_that_was_cut_off_is_put_right_under_its_grammar() -> None:
    found = await whole().check(CUT)
    assert found.stages == (DECODER, REPAIR, SCHEMA, RULES, SEMANTIC)
    assert found.report.repairs == 1


async def test_chat_has_rules_and_a_meaning_and_they_are_optional() -> None:
    found = await ConstraintPipeline(Mode.CHAT).check("Hello!")
    assert (found.value, found.stages, found.report) == ("Hello!", (), ValidationReport())
    pipeline = ConstraintPipeline("chat", rules=[Rule("short", lambda text: len(text) < 9)], semantic=Judge())
    assert (await pipeline.check("Hello!")).stages == (RULES, SEMANTIC)
    with pytest.raises(RuleFailed):
        await pipeline.check("Hello, hello!")


def test_modes_have_the_stages_that_they_may_have() -> None:
    for mode in ("structured", "redundant"):
        with pytest.raises(SchemaRequired) as required:
            ConstraintPipeline(mode, rules=SURE)
        assert required.value.code == "CONFIG_SCHEMA_REQUIRED"
        assert ConstraintPipeline(mode, schema=MOOD).mode is Mode(mode)
    assert ConstraintPipeline("plan").stages == ()
    assert ConstraintPipeline("plan", grammar='root ::= "x"').stages == (DECODER,)
    asked: list[dict[str, Any]] = [{"schema": MOOD}, {"grammar": 'root ::= "x"'}]
    for options in asked:
        with pytest.raises(UserError, match="the mode chat has no stage"):
            ConstraintPipeline("chat", **options)
    wrong: list[tuple[dict[str, Any], type[FlyballError]]] = [
        ({"mode": "loud"}, UserError),
        ({"semantic": 3}, UserError),
        ({"rules": [3]}, UserError),
        ({"schema": {"type": "thing"}}, SchemaMalformed),
        ({"schema": MOOD, "grammar": "root"}, GrammarMalformed),
    ]
    for options, error in wrong:
        with pytest.raises(error):
            ConstraintPipeline(options.pop("mode", "plan"), **options)


def test_a_report_is_the_result_that_a_response_has() -> None:
    assert ValidationReport is ValidationResult


async def test_a_model_may_judge() -> None:
    verdict = {"reason": "It is about something else.", "valid": False}
    judge = ModelSemanticValidator(ScriptedEngine(tool_call("final_result", verdict)))
    with pytest.raises(SemanticFailed, match="something else"):
        await whole(semantic=judge).check(GOOD, "How is it?")


async def test_an_agent_with_the_same_options_comes_to_the_same() -> None:
    odd, unsure = (
        '{"sentiment": "Positive", "confidence": 0.9',
        '{"sentiment": "positive", "confidence": 0.1}',
    )
    pipeline = whole(grammar=None)
    result = await Agent(Script(odd), output_mode="native", **pipeline.options()).run("go")
    assert result.output == (await pipeline.check(odd)).value
    with pytest.raises(RuleFailed):
        await Agent(Script(unsure), output_mode="native", retries=0, **pipeline.options()).run("go")
    meant = whole(grammar=None, semantic=Judge(valid=False))
    with pytest.raises(SemanticFailed):
        await Agent(Script(GOOD), output_mode="native", retries=0, **meant.options()).run("go")
    assert whole().options()["grammar"] == GrammarDefinition.from_schema(MOOD).grammar
    assert ConstraintPipeline("chat").options() == {}


def _mood(mood: str, sure: float) -> str:
    return json.dumps({"sentiment": mood, "confidence": sure})


_moods = st.sampled_from(["positive", "Positive ", "mixed", "negativ"])
_answers = st.text(max_size=30) | st.builds(_mood, _moods, st.floats(-1, 2))
_PIPELINES = [
    ConstraintPipeline("structured", schema=MOOD, grammar=grammar, rules=SURE, repair=repair)
    for grammar in (None, GrammarDefinition.from_schema(MOOD))
    for repair in (True, False)
]


@given(st.sampled_from(_PIPELINES), _answers)
async def test_a_report_tells_what_became_of_any_answer(pipeline: ConstraintPipeline, answer: str) -> None:
    found = await pipeline.run(answer)
    report = found.report
    assert report.passed + report.failed == len(found.stages)
    assert found.stages == tuple(sorted(found.stages, key=list(ConstraintStage).index))
    assert (report.failed == 0) == found.valid == (not report.violations)
    assert len(report.warnings) == report.repairs
    assert pipeline.repair or not report.repairs
    if found.valid:
        assert (await pipeline.run(json.dumps(found.value))).value == found.value
