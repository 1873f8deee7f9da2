"""The page about errors lists every error of the tree as it is: its code, its place, whether to try again."""

from __future__ import annotations

from flyball.core.errors import FailureCategory, FlyballError
from tests.core.error_tree import tree
from tests.docs.tables import table

WORDS = {
    FailureCategory.INFERENCE: "INFERENCE_",
    FailureCategory.TOOL: "TOOL_",
    FailureCategory.CONSTRAINT: "CONSTRAINT_",
    FailureCategory.VALIDATION: "VALIDATION_",
    FailureCategory.ORCHESTRATION: "ORCHESTRATION_",
    FailureCategory.CONFIGURATION: "CONFIG_",
    FailureCategory.CANCELLATION: "CANCELLED_",
}


def row(error: type[FlyballError]) -> str:
    """How an error stands in the table."""
    under = "" if error is FlyballError else f"`{error.__mro__[1].__name__}`"
    about = (error.__doc__ or "").splitlines()[0]
    return (
        f"| `{error.__name__}` | {under} | `{error.code}` | {'yes' if error.retryable else 'no'} | {about} |"
    )


def cells(line: str) -> tuple[str, ...]:
    return tuple([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])


def test_the_table_is_the_tree() -> None:
    expected = [row(error) for error in tree()]
    shown = table("errors.md", "error", "under")
    assert shown == [cells(line) for line in expected], (
        "docs/errors.md does not tell the tree of core/errors; its rows should be\n" + "\n".join(expected)
    )


def test_every_category_has_its_root_and_what_to_do() -> None:
    shown = [(category, root) for category, root, _ in table("errors.md", "category", "root")]
    roots = {child.category: child.__name__ for child in reversed(FlyballError.__subclasses__())}
    assert shown == [(str(category), roots[category]) for category in FailureCategory]


def test_a_code_begins_with_the_word_of_its_category() -> None:
    for error in tree(FlyballError):
        assert error.code.startswith(WORDS[error.category]), error
