"""How a user names a model file: a name of the catalogue, a path, or a file on Hugging Face."""

from __future__ import annotations

import os
import re
from pathlib import Path

from flyball.core.errors import UnknownModel
from flyball.models.catalogue import find
from flyball.models.model import HuggingFace, Model

PREFIX = "hf:"
"""What a reference to Hugging Face begins with."""

_HUGGING_FACE = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)/(?P<file>(?:[\w. -]+/)*[\w. -]+\.gguf)", re.ASCII)


def read_reference(reference: str) -> Model | Path:
    """What a reference names: a model that can be pulled, or a file that is there.

    Raises:
        UnknownModel: neither; the message says what is near, or what is wrong.
    """
    if reference.startswith(PREFIX):
        return _on_hugging_face(reference)
    if reference.lower().endswith(".gguf") or "/" in reference or os.sep in reference:
        path = Path(reference).expanduser()
        if path.is_file():
            return path
        wrong = "is a folder, not a file" if path.is_dir() else "is not there"
        raise UnknownModel(
            f"the model file {reference[:200]!r} {wrong} (looked from {str(Path.cwd())!r}): "
            "give the path of a .gguf file",
            model=reference,
            near=[],
        )
    return find(reference)


def _on_hugging_face(reference: str) -> Model:
    match = _HUGGING_FACE.fullmatch(reference)
    if match is None or ".." in reference:
        raise UnknownModel(
            f"{reference[:200]!r} names no GGUF file on Hugging Face: write hf:<owner>/<repo>/<file>.gguf",
            model=reference,
            near=[],
        )
    repo, file = match["repo"], match["file"]
    return Model(name=reference, repo=repo, file=file, sources=(HuggingFace(repo, file),))
