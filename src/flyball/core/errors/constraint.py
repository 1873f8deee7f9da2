"""What goes wrong with the form of outputs."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


class ConstraintFailure(FlyballError):
    """The output breaks a constraint on its form."""

    code = "CONSTRAINT_SCHEMA_INVALID"
    category = FailureCategory.CONSTRAINT
    retryable = True


class GrammarRejected(ConstraintFailure):
    """The output breaks the grammar: details `grammar`, `position`, `line` and `column` of where."""

    code = "CONSTRAINT_GRAMMAR_REJECTED"


class GrammarUnsupported(ConstraintFailure):
    """A schema says what no grammar can: details `path` (into the schema) and `keyword`."""

    code = "CONSTRAINT_GRAMMAR_UNSUPPORTED"
    retryable = False


class SchemaInvalid(ConstraintFailure):
    """The output breaks its schema: details `path` and `violation`."""


class JSONInvalid(ConstraintFailure):
    """The output is no JSON."""

    code = "CONSTRAINT_JSON_INVALID"


class EnumUnrecognized(ConstraintFailure):
    """A value is outside its enumeration."""

    code = "CONSTRAINT_ENUM_UNRECOGNIZED"
