"""The root of all errors, their categories, and an error as data."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, cast

from msgspec import Struct

from flyball.core.encodable import NotEncodable, clean_text, to_json


class FailureCategory(StrEnum):
    """The seven categories; each error belongs to exactly one."""

    INFERENCE = "inference_failure"
    TOOL = "tool_failure"
    CONSTRAINT = "constraint_failure"
    VALIDATION = "validation_failure"
    ORCHESTRATION = "orchestration_failure"
    CONFIGURATION = "configuration_failure"
    CANCELLATION = "cancellation"


class SystemError(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, dict=True):  # noqa: A001 - pagantic's name for it
    """An error as data: what journals, responses and wires carry.

    Programs decide by `code`, `category` and `retryable`; `caused_by` tells what lay behind it.
    """

    code: str
    category: FailureCategory
    message: str
    retryable: bool = False
    details: dict[str, Any] | None = None
    caused_by: str | None = None
    kind: str = ""

    def exception(self) -> FlyballError:
        """The exception this was written from, of the same class where that class still exists.

        Where it was written in this process, it has the cause and the traceback of the original too.
        """
        known = _by_name(FlyballError)
        cls = known.get(self.kind) or _by_code(known.values()).get(self.code) or _of_category(self.category)
        # The root's __init__, because a subclass of a user's may ask for arguments that are not written down.
        error = cls.__new__(cls, self.message)
        FlyballError.__init__(error, self.message, retryable=self.retryable)
        error.details = dict(self.details or {})
        error.caused_by = self.caused_by
        error.code = self.code
        raised = self.__dict__.get("raised")
        if isinstance(raised, FlyballError):
            error.__cause__ = raised.__cause__
            error.__traceback__ = raised.__traceback__
        return error


class FlyballError(Exception):
    """The root. `code`, `category` and `retryable` are for programs; `details` is plain data.

    `partial` is what a run had reached when it failed (a `RunResult`), or None.
    """

    code: str = "ORCHESTRATION_FAILED"
    category: ClassVar[FailureCategory] = FailureCategory.ORCHESTRATION
    retryable: bool = False

    def __init__(self, message: str, *, retryable: bool | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details
        self.partial: Any = None
        self.caused_by: str | None = None
        if retryable is not None:
            self.retryable = retryable

    def record(self) -> SystemError:
        """This error as data that can always be encoded: a detail without a JSON form is told by its type."""
        cause = self.__cause__
        if cause is None and not self.__suppress_context__:
            cause = self.__context__
        caused_by = self.caused_by
        if caused_by is None and cause is not None:
            caused_by = _told(cause)
        record = SystemError(
            code=self.code,
            category=self.category,
            message=clean_text(self.message),
            retryable=self.retryable,
            details={clean_text(key): _plain(value) for key, value in self.details.items()} or None,
            caused_by=caused_by,
            kind=type(self).__name__,
        )
        # Beside the data, never in it: who wrote this down can still see where it came from.
        cast("dict[str, Any]", record.__dict__)["raised"] = self
        return record


def _plain(value: Any) -> Any:
    try:
        return to_json(value)
    except NotEncodable:
        return f"<{type(value).__qualname__}>"


def _told(cause: BaseException) -> str:
    name = type(cause).__name__
    try:
        return clean_text(f"{name}: {cause}")
    except Exception:  # an exception that cannot even say what it is must not hide the one that it caused
        return name


def _by_name(root: type[FlyballError]) -> dict[str, type[FlyballError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        # Of two classes with one name the one that was there first wins: flyball's own over a user's.
        found = _by_name(child) | found
    return found


def _by_code(classes: Any) -> dict[str, type[FlyballError]]:
    codes: dict[str, type[FlyballError]] = {}
    for cls in classes:
        codes.setdefault(cls.code, cls)
    return codes


def _of_category(category: FailureCategory) -> type[FlyballError]:
    """The class of all errors of a category: the one that was there first is flyball's own."""
    return next(cls for cls in FlyballError.__subclasses__() if cls.category is category)
