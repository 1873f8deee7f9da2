"""How the studio's files are served: from memory, to anybody, and so that nothing else can run in the page.

The files hold nothing of anybody's runs, so they need no token; what they show they ask the API for, with the
token that the user gives them.
"""

from __future__ import annotations

from importlib.resources import files

from flyball.adapters.http.asking import Answer, Asking
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import NotFound

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


def studio_operations() -> list[Operation]:
    """The operations that give the page and its files. They are not for programs, and in no document."""
    found = {
        file.name: file.read_bytes()
        for file in (files("flyball.adapters.http.studio") / "page").iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }

    def given(name: str) -> Answer:
        return Answer(found[name], headers=_HEADERS, media_type=_TYPES[name.rpartition(".")[2]])

    async def studio(asking: Asking) -> Answer:
        return given("index.html")

    async def studio_file(asking: Asking) -> Answer:
        name = asking.values["file"]
        if name not in found:
            raise NotFound(f"the studio has no file {name[:100]!r}")
        return given(name)

    return [
        Operation("GET", "/", "The studio", studio, scope=None),
        Operation("GET", "/studio/{file}", "A file of the studio", studio_file, scope=None),
    ]
