"""The errors: the tree is the one that is drawn, and an error survives being written down."""

from __future__ import annotations

import pickle
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core import errors
from flyball.core.errors import (
    ContentFilterError,
    FailureCategory,
    FlyballError,
    GuardrailError,
    IncompleteToolCall,
    InvalidMessage,
    ModelHTTPError,
    OrchestrationFailure,
    RunConditionError,
    SystemError,  # noqa: A004 - pagantic's name for it
    ToolExecutionFailed,
    UnexpectedModelBehavior,
    UserError,
)
from tests.core.error_tree import tree
from tests.effort import examples
from tests.strategies import errors as records
from tests.strategies import json_objects, texts

PAGANTIC_CODES = {
    "INFERENCE_ENGINE_ERROR",
    "INFERENCE_MODEL_UNAVAILABLE",
    "INFERENCE_CONTEXT_EXCEEDED",
    "INFERENCE_MALFORMED_RESPONSE",
    "TOOL_NOT_FOUND",
    "TOOL_EXECUTION_FAILED",
    "TOOL_TIMEOUT",
    "TOOL_UNAVAILABLE",
    "CONSTRAINT_GRAMMAR_REJECTED",
    "CONSTRAINT_SCHEMA_INVALID",
    "CONSTRAINT_JSON_INVALID",
    "CONSTRAINT_ENUM_UNRECOGNIZED",
    "VALIDATION_RULE_FAILED",
    "VALIDATION_SEMANTIC_FAILED",
    "ORCHESTRATION_STEP_MISMATCH",
    "ORCHESTRATION_ITERATION_LIMIT",
    "ORCHESTRATION_NO_CONSENSUS",
    "CONFIG_NO_ENGINE",
    "CONFIG_SCHEMA_REQUIRED",
    "CONFIG_GRAMMAR_NOT_FOUND",
    "CANCELLED_TIMEOUT",
    "CANCELLED_SIGNAL",
}
PREFIX = {
    FailureCategory.INFERENCE: "INFERENCE_",
    FailureCategory.TOOL: "TOOL_",
    FailureCategory.CONSTRAINT: "CONSTRAINT_",
    FailureCategory.VALIDATION: "VALIDATION_",
    FailureCategory.ORCHESTRATION: "ORCHESTRATION_",
    FailureCategory.CONFIGURATION: "CONFIG_",
    FailureCategory.CANCELLATION: "CANCELLED_",
}


CLASSES = list(tree())


class Drawn(msgspec.Struct):
    name: str
    parent: str | None
    words: list[str]


def drawing() -> list[Drawn]:
    """The tree in the module's docstring, line by line."""
    found: list[Drawn] = []
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^([ │├└─]*)([A-Z]\w*)(?:\s{2,}(.*))?$", line)
        if match is None or not line.startswith("    "):
            continue
        depth, name, words = len(match[1]), match[2], (match[3] or "").split()
        while above and above[-1][0] >= depth:
            above.pop()
        found.append(Drawn(name, above[-1][1] if above else None, words))
        above.append((depth, name))
    return found


def test_every_class_is_drawn_where_it_stands_and_nothing_else_is() -> None:
    drawn = [(one.name, one.parent) for one in drawing()]
    real = [(cls.__name__, cls.__base__.__name__ if cls is not FlyballError else None) for cls in CLASSES]  # pyright: ignore[reportOptionalMemberAccess]
    assert sorted(drawn, key=str) == sorted(real, key=str)


def test_the_codes_and_categories_are_drawn_as_they_are() -> None:
    known = {cls.__name__: cls for cls in CLASSES}
    for one in drawing():
        cls = known[one.name]
        if cls is FlyballError:
            continue
        if FlyballError in cls.__bases__:
            assert one.words[0] == cls.category
        elif one.words:
            assert one.words == [cls.code]
        else:
            assert cls.code == cls.__base__.code  # pyright: ignore[reportOptionalMemberAccess, reportUnknownMemberType, reportAttributeAccessIssue]


def test_every_code_of_pagantic_is_there() -> None:
    assert {cls.code for cls in CLASSES} >= PAGANTIC_CODES


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_has_one_category_and_a_code_that_says_so(cls: type[FlyballError]) -> None:
    assert cls.code.startswith(PREFIX[cls.category])
    assert cls.__doc__


@pytest.mark.parametrize(
    ("category", "retryable"),
    [
        ("inference_failure", True),
        ("tool_failure", False),
        ("constraint_failure", True),
        ("validation_failure", True),
        ("orchestration_failure", False),
        ("configuration_failure", False),
        ("cancellation", False),
    ],
)
def test_the_seven_categories_and_whether_they_may_be_tried_again(category: str, retryable: bool) -> None:
    (cls,) = [cls for cls in CLASSES if FlyballError in cls.__bases__ and cls.category == category]
    assert cls("x").retryable is retryable
    assert len(FailureCategory) == 7


def test_not_retryable_is_the_category_s_word_but_for_what_another_moment_or_place_may_mend() -> None:
    fixed = {"orchestration_failure", "configuration_failure", "cancellation"}
    told = {cls.__name__ for cls in CLASSES if cls.category in fixed and cls.retryable}
    assert told == {"JournalConflict", "JournalFull", "JournalUnreachable", "UnknownAgent"}


@pytest.mark.hypothesis
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_comes_back_of_its_class(cls: type[FlyballError]) -> None:
    @examples(10)
    @given(texts, st.none() | st.booleans(), st.dictionaries(st.sampled_from("abc"), st.integers()))
    def comes_back(message: str, retryable: bool | None, details: dict[str, Any]) -> None:
        error = cls(message, retryable=retryable, **details)
        record = error.record()
        written = msgspec.json.decode(msgspec.json.encode(record), type=SystemError)
        back = written.exception()
        assert written == record
        assert type(back) is cls
        assert (back.code, back.category, back.message) == (error.code, error.category, message)
        assert (back.retryable, back.details) == (error.retryable, details)
        assert str(back) == message
        assert back.record() == record

    comes_back()


@given(records)
def test_any_record_gives_an_exception_that_is_written_the_same(record: SystemError) -> None:
    back = record.exception().record()
    assert (back.code, back.message, back.retryable) == (record.code, record.message, record.retryable)
    assert (back.details or {}) == (record.details or {})
    assert back.caused_by == record.caused_by


@given(json_objects)
def test_details_may_have_any_names(details: dict[str, Any]) -> None:
    details |= {"message": "m", "retryable": "r", "self": "s"}
    record = SystemError("TOOL_TIMEOUT", FailureCategory.TOOL, "late", details=details, kind="ToolTimeout")
    assert record.exception().details == details


def test_an_unknown_class_comes_back_by_its_code_then_by_its_category() -> None:
    by_code = SystemError("TOOL_TIMEOUT", FailureCategory.TOOL, "m", kind="FromTheFuture").exception()
    by_category = SystemError("TOOL_MELTED", FailureCategory.TOOL, "m", kind="FromTheFuture").exception()
    assert (type(by_code).__name__, by_code.code) == ("ToolTimeout", "TOOL_TIMEOUT")
    assert (type(by_category).__name__, by_category.code) == ("ToolFailure", "TOOL_MELTED")


@given(st.text(st.characters()), st.text(st.characters()))
def test_whatever_the_message_and_the_details_are_the_record_can_be_encoded(
    message: str, detail: str
) -> None:
    try:
        raise ValueError(detail)
    except ValueError as cause:
        error = ToolExecutionFailed(
            message, text=detail, object=object(), nan=float("nan"), some={1}, raw=b"\xff"
        )
        error.__cause__ = cause
    record = error.record()
    assert msgspec.json.decode(msgspec.json.encode(record), type=SystemError) == record
    assert record.details is not None
    assert (record.details["object"], record.details["nan"], record.details["some"]) == (
        "<object>",
        "nan",
        [1],
    )


def test_the_cause_is_told() -> None:
    def raised(how: str) -> str | None:
        try:
            try:
                raise KeyError("inner")
            except KeyError as inner:
                if how == "from":
                    raise UserError("outer") from inner
                if how == "from none":
                    raise UserError("outer") from None
                raise UserError("outer")  # noqa: B904 - what is seen when nobody says from
        except UserError as error:
            return error.record().caused_by

    assert raised("from") == "KeyError: 'inner'"
    assert raised("within") == "KeyError: 'inner'"
    assert raised("from none") is None


def test_a_cause_that_cannot_say_what_it_is() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    error = UserError("outer")
    error.__cause__ = MuteError()
    assert error.record().caused_by == "MuteError"


def test_a_class_of_the_user_s_with_its_own_arguments_comes_back() -> None:
    class QuotaOfTheHouse(OrchestrationFailure):
        """A user's error."""

        code = "ORCHESTRATION_HOUSE"

        def __init__(self, rooms: int) -> None:
            super().__init__(f"only {rooms} rooms", rooms=rooms)

    record = QuotaOfTheHouse(3).record()
    back = record.exception()
    assert type(back) is QuotaOfTheHouse
    assert (back.message, back.details) == ("only 3 rooms", {"rooms": 3})


def test_a_user_s_class_does_not_take_the_place_of_ours() -> None:
    class InvalidMessage(FlyballError):  # noqa: N818 - the name that is taken
        """A user's error with a name that is taken."""

    assert type(errors.InvalidMessage("x").record().exception()) is errors.InvalidMessage
    assert InvalidMessage is not errors.InvalidMessage


def test_errors_can_be_pickled() -> None:
    error = InvalidMessage("m", retryable=True, where="here")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.details, back.retryable) == (
        InvalidMessage,
        "m",
        {"where": "here"},
        True,
    )


def test_an_http_error_tells_its_details_by_name_also_from_a_journal() -> None:
    error = ModelHTTPError("busy", status_code=429, body="slow down", model="m-1", retry_after=2.5)
    for one in (error, error.record().exception()):
        assert isinstance(one, ModelHTTPError)
        assert (one.status_code, one.body, one.model_name, one.retry_after) == (429, "slow down", "m-1", 2.5)
    bare = ModelHTTPError("gone")
    assert (bare.status_code, bare.body, bare.model_name, bare.retry_after) == (0, "", "", None)


def test_other_errors_tell_what_gollem_s_have_by_name_also_from_a_journal() -> None:
    told: list[tuple[FlyballError, str, str]] = [
        (UnexpectedModelBehavior("what?", body="gibberish"), "body", "gibberish"),
        (IncompleteToolCall("cut", body='{"x'), "body", '{"x'),
        (ContentFilterError("filtered"), "body", ""),
        (GuardrailError("no", guardrail="content_filter"), "guardrail_name", "content_filter"),
        (RunConditionError("stopped", reason="enough"), "reason", "enough"),
    ]
    for error, name, value in told:
        assert getattr(error, name) == value
        assert getattr(error.record().exception(), name) == value
