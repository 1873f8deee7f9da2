"""ConstraintPipeline: one answer through the six stages that hold it to its form and its content.

    decoder constraint, repair, enum normalisation, schema, rules, semantic

What looks at an answer inside an agent (`settling`, `schema_output`) are the same functions: the pipeline is
for answers that come from elsewhere, for tests, and for what wants to see stage by stage. `options()` gives
an agent the same stages.

Rules kept here:
- the stages stand in this order, and each is run only where it is needed: JSON is not repaired that is JSON,
  members of enumerations are looked at only where the schema is broken, rules only where the form is right,
  a judge is asked only where the rules hold;
- a mode says which stages it may have and which it must;
- what was found is a report in every case; `check` raises what the report tells of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct

from flyball.constraint.grammar import DecoderConstraint, GrammarDefinition
from flyball.constraint.validators import failure_of
from flyball.core.errors import EnumUnrecognized, FlyballError, GrammarRejected, SchemaRequired, UserError
from flyball.core.spec import OutputSpec
from flyball.orchestrate.contracts import Mode
from flyball.orchestrate.contracts.response import ValidationReport
from flyball.orchestrate.following import as_it_follows
from flyball.orchestrate.mending import JSON_MENDED
from flyball.orchestrate.schema_output import Look, SchemaOutput, SchemaReader
from flyball.validate.rules import Rule, RuleValidator, rules_failed
from flyball.validate.semantic import SemanticCheck, SemanticValidator, semantic_failed, verdict_of


class ConstraintStage(StrEnum):
    """The stages, in their order."""

    DECODER = "decoder_constraint"
    REPAIR = "repair"
    ENUMS = "enum_normalisation"
    SCHEMA = "schema"
    RULES = "rules"
    SEMANTIC = "semantic"


ALLOWED: Mapping[Mode, frozenset[ConstraintStage]] = {
    Mode.CHAT: frozenset({ConstraintStage.RULES, ConstraintStage.SEMANTIC}),
    Mode.STRUCTURED: frozenset(ConstraintStage),
    Mode.PLAN: frozenset(ConstraintStage),
    Mode.REDUNDANT: frozenset(ConstraintStage),
}
"""Which stages a mode may have. A plan has a pipeline for each step that wants one, of whatever stages."""
REQUIRES_SCHEMA = frozenset({Mode.STRUCTURED, Mode.REDUNDANT})


class Constrained(Struct, frozen=True):
    """What an answer came to: its value, the stages that looked at it, the report, and what it failed with.

    `value` is the output: the text itself where no schema is, and what could be read of it on a failure.
    """

    value: Any
    stages: tuple[ConstraintStage, ...]
    report: ValidationReport
    failure: FlyballError | None = None

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.failure is None


class ConstraintPipeline:
    """Holds answers of a mode to a grammar, a schema, rules and a meaning, each where it is given.

    Args:
        mode: `chat` has rules and a semantic validator at the most; `structured` and `redundant` must have a
            schema; `plan` is for one step of a plan, and may have anything.
        schema: the JSON Schema that the answer follows.
        grammar: what the decoder was held to: checked here, as the first stage. GBNF text, or a definition.
        rules: named checks of the output.
        semantic: who says whether the output means what was asked for.
        repair: whether broken JSON and misspelt members of enumerations are put right.

    Raises:
        SchemaRequired: the mode needs a schema.
        UserError: the mode has no such stage, or something is not what it should be.
        SchemaMalformed, GrammarMalformed: the schema or the grammar is none.
    """

    def __init__(
        self,
        mode: Mode | str = Mode.STRUCTURED,
        *,
        schema: dict[str, Any] | None = None,
        grammar: str | DecoderConstraint | None = None,
        rules: RuleValidator | Iterable[Rule] | None = None,
        semantic: SemanticValidator | None = None,
        repair: bool = True,
    ) -> None:
        try:
            self.mode = Mode(mode)
        except ValueError:
            raise UserError(f"mode= is one of {', '.join(Mode)}, not {mode!r}") from None
        self.schema = None if schema is None else SchemaOutput(schema, repair)
        self.grammar = GrammarDefinition("grammar", grammar) if isinstance(grammar, str) else grammar
        self.rules = rules if rules is None or isinstance(rules, RuleValidator) else RuleValidator(rules)
        self.semantic = semantic
        self.repair = repair
        if semantic is not None:
            SemanticCheck(semantic)  # which refuses what is none
        if self.mode in REQUIRES_SCHEMA and schema is None:
            raise SchemaRequired(
                f"the mode {self.mode} needs a schema, and there is none", mode=str(self.mode)
            )
        if extra := [stage for stage in self.stages if stage not in ALLOWED[self.mode]]:
            raise UserError(
                f"the mode {self.mode} has no stage {extra[0]}: leave it out, or take another mode"
            )
        self._reader = None if self.schema is None else SchemaReader(self.schema, OutputSpec())

    @property
    def stages(self) -> tuple[ConstraintStage, ...]:
        """The stages that an answer may come by."""
        held = {
            ConstraintStage.DECODER: self.grammar is not None,
            ConstraintStage.REPAIR: self.repair and self.schema is not None,
            ConstraintStage.ENUMS: self.repair and self.schema is not None,
            ConstraintStage.SCHEMA: self.schema is not None,
            ConstraintStage.RULES: self.rules is not None and bool(self.rules.rules),
            ConstraintStage.SEMANTIC: self.semantic is not None,
        }
        return tuple([stage for stage in ConstraintStage if held[stage]])

    def options(self) -> dict[str, Any]:
        """The options of an agent with the same stages: `Agent(model, **pipeline.options())`."""
        options: dict[str, Any] = {}
        if self.schema is not None:
            options["output"] = self.schema
        if self.grammar is not None:
            options["grammar"] = self.grammar.grammar
        validators: list[Any] = [self.rules] if self.rules is not None else []
        if self.semantic is not None:
            from flyball.orchestrate.semantic import ModelSemanticValidator

            judges = isinstance(self.semantic, ModelSemanticValidator)  # which is a validator by itself
            validators.append(self.semantic if judges else SemanticCheck(self.semantic))
        if validators:
            options["validators"] = tuple(validators)
        return options

    async def check(self, answer: str, intent: str = "") -> Constrained:
        """What an answer came to that is right, or was put right.

        Raises:
            GrammarRejected, JSONInvalid, EnumUnrecognized, SchemaInvalid: its form is wrong.
            RuleFailed, SemanticFailed: its content is.
            FlyballError: a judge could not be asked.
        """
        found = await self.run(answer, intent)
        if found.failure is not None:
            raise found.failure
        return found

    async def run(self, answer: str, intent: str = "") -> Constrained:
        """What an answer came to, right or wrong; `intent` is what was asked for, in words.

        Raises:
            FlyballError: a judge could not be asked, or a grammar cannot be checked.
        """
        course = _Course(answer)
        text = self._by_grammar(course, answer)
        if course.failure is None and self._reader is not None:
            self._by_schema(course, self._reader.look(text))
        if course.failure is None and self.rules is not None and self.rules.rules:
            broken = await self.rules.violations(course.value)
            failure = rules_failed(broken, self.rules.asked) if broken else None
            course.passed_by(ConstraintStage.RULES, failure, [str(one) for one in broken])
        if course.failure is None and self.semantic is not None:
            verdict = await verdict_of(self.semantic, course.value, intent)
            failure = None if verdict.valid else semantic_failed(verdict, intent)
            course.passed_by(ConstraintStage.SEMANTIC, failure, [] if failure is None else [failure.message])
        return course.done()

    def _by_grammar(self, course: _Course, answer: str) -> str:
        """The answer as it follows the grammar: what was cut off or wrapped in prose may be put right."""
        if self.grammar is None:
            return answer
        try:
            text, mended = as_it_follows(self.grammar, answer, mend=self.repair and self.schema is not None)
        except GrammarRejected as rejected:
            course.passed_by(ConstraintStage.DECODER, rejected, [rejected.message])
            return answer
        if mended:
            course.put_right(ConstraintStage.REPAIR, JSON_MENDED)
        course.passed_by(ConstraintStage.DECODER, None)
        return text

    def _by_schema(self, course: _Course, look: Look) -> None:
        for repair in look.repairs:
            stage = ConstraintStage.REPAIR if repair == JSON_MENDED else ConstraintStage.ENUMS
            course.put_right(stage, repair)
        if look.value is not UNSET:
            course.value = look.value
        failure = failure_of(look.faults) if look.faults else None
        stage = ConstraintStage.SCHEMA
        if self.repair and look.value is UNSET:
            stage = ConstraintStage.REPAIR  # where it ends: there is nothing to hold against the schema
        elif self.repair and isinstance(failure, EnumUnrecognized):
            stage = ConstraintStage.ENUMS
        course.passed_by(stage, failure, [str(fault) for fault in look.faults])


class _Course:
    """An answer on its way."""

    def __init__(self, answer: str) -> None:
        self.value: Any = answer
        self.failure: FlyballError | None = None
        self.by: dict[ConstraintStage, bool] = {}
        self.repairs: list[str] = []
        self.violations: list[str] = []

    def passed_by(
        self, stage: ConstraintStage, failure: FlyballError | None, violations: Iterable[str] = ()
    ) -> None:
        """A stage looked at it."""
        self.by[stage] = failure is None
        self.failure = failure
        self.violations += violations

    def put_right(self, stage: ConstraintStage, what: str) -> None:
        """A stage put something right."""
        self.by[stage] = True
        self.repairs.append(what)

    def done(self) -> Constrained:
        passed = sum(self.by.values())
        report = ValidationReport(
            passed=passed,
            failed=len(self.by) - passed,
            repairs=len(self.repairs),
            violations=tuple(self.violations),
            warnings=tuple([f"the answer was put right: {repair}" for repair in self.repairs]),
        )
        stages = tuple([stage for stage in ConstraintStage if stage in self.by])
        return Constrained(self.value, stages, report, self.failure)
