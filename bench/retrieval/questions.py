"""The questions as structs, read from a TOML file, and checked against the sections that there are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("questions.toml")
DOCS = Path(__file__).resolve().parents[2] / "docs"


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked, and the sections that answer it: any of them will do."""

    ask: str
    answered: tuple[str, ...]


class _Questions(Struct, frozen=True, forbid_unknown_fields=True):
    question: tuple[Question, ...]


def all_questions(file: Path = FILE) -> tuple[Question, ...]:
    """The questions of a file."""
    return msgspec.toml.decode(file.read_bytes(), type=_Questions).question


def without_a_section(questions: Iterable[Question], sources: Iterable[str]) -> list[str]:
    """The sections that questions name and that are not there: a page was changed, and the questions not."""
    there = set(sources)
    return [section for question in questions for section in question.answered if section not in there]
