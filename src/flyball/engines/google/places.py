"""Where Gemini is: addresses of models, on the Gemini API and on Vertex AI."""

from __future__ import annotations

from urllib.parse import quote

GEMINI = "https://generativelanguage.googleapis.com"
_GEMINI_VERSION = "v1beta"
_VERTEX_VERSION = "v1beta1"
_MULTI_REGIONS = frozenset(("us", "eu"))


def gemini_url(model: str, base_url: str | None = None) -> str:
    """A model on the Gemini API: by its name, or its whole one (`models/…`, `tunedModels/…`)."""
    path = model if "/" in model else f"models/{model}"
    return f"{_base(base_url, GEMINI)}/{_GEMINI_VERSION}/{_quoted(path)}"


def vertex_url(model: str, project: str | None, location: str, base_url: str | None = None) -> str:
    """A model on Vertex AI: by its name, its publisher's (`publishers/…`), or a whole one (`projects/…`).

    Without a project it is asked by a key, which has one.
    """
    path = model if "/" in model else f"publishers/google/models/{model}"
    if project is not None and not path.startswith("projects/"):
        path = f"projects/{project}/locations/{location}/{path}"
    return f"{_base(base_url, vertex_host(location))}/{_VERTEX_VERSION}/{_quoted(path)}"


def vertex_host(location: str) -> str:
    """Where Vertex AI is for a location: `global`, a region, or `us` and `eu`, which have several."""
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _MULTI_REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


def _base(given: str | None, usual: str) -> str:
    return (given or usual).rstrip("/")


def _quoted(path: str) -> str:
    return quote(path, safe="/@.-_~")
