"""A file from Hugging Face, over HTTPS with what Python has."""

from __future__ import annotations

import http.client
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from email.message import Message
from typing import IO, Any
from urllib.parse import quote

from flyball.models.model import HuggingFace
from flyball.models.sources.failed import SourceError

ENDPOINT = "https://huggingface.co"
"""Where Hugging Face is, unless the environment variable HF_ENDPOINT says otherwise."""

_CONNECT = 5.0
_ANSWER = 10.0
_SILENCE = 30.0
"""Seconds until nobody is there; until nobody answers; and of silence, until who has answered is gone."""

_PIECE = 1 << 20
_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')


class Opened:
    """An open download: how long the file is (0: not said), its hash ("": not said), and its pieces."""

    def __init__(self, response: http.client.HTTPResponse, headers: Message) -> None:
        self._response = response
        length = headers.get("X-Linked-Size") or response.headers.get("Content-Length") or "0"
        self.size = int(length) if length.isdecimal() else 0
        # Files that are kept outside git have their sha256 as their tag.
        tag = _SHA256.fullmatch(headers.get("X-Linked-Etag", ""))
        self.sha256 = tag[1] if tag else ""

    def pieces(self) -> Generator[bytes]:
        """The file's bytes.

        Raises:
            SourceError: the connection broke, or ended too early.
        """
        came = 0
        while True:
            try:
                piece = self._response.read(_PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise SourceError(f"the connection broke after {came:,} bytes ({_reason(error)})") from error
            if not piece:
                break
            came += len(piece)
            yield piece
        if self.size and came != self.size:
            raise SourceError(f"the connection ended after {came:,} of {self.size:,} bytes")


@contextmanager
def opened(source: HuggingFace) -> Generator[Opened]:
    """Open a file for download; it is closed after the block.

    Raises:
        SourceError: there is no network, or no such file.
    """
    first = _FirstAnswer()
    opener = urllib.request.build_opener(_Http(), _Https(), first)
    try:
        response = _answered(opener, _request(source))
    except urllib.error.HTTPError as error:
        with error:
            raise SourceError(_refusal(error.code)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(f"no connection ({_reason(error)})") from error
    with response:
        yield Opened(response, first.headers or response.headers)


def _answered(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Any:
    """Open a request, and stop waiting after a while, because looking up a name takes as long as it likes."""
    answer: Future[Any] = Future()

    def run() -> None:
        try:
            answer.set_result(opener.open(request, timeout=_CONNECT))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="flyball-hugging-face", daemon=True).start()
    try:
        return answer.result(_ANSWER)
    except TimeoutError:
        answer.add_done_callback(_close_late)
        raise


def _close_late(answer: Future[Any]) -> None:
    if answer.exception() is None:
        answer.result().close()


def _request(source: HuggingFace) -> urllib.request.Request:
    endpoint = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or ENDPOINT
    request = urllib.request.Request(
        f"{endpoint}/{quote(source.repo)}/resolve/main/{quote(source.file)}",
        headers={"User-Agent": "flyball"},
    )
    token = os.environ.get("HF_TOKEN", "").strip()
    if token:
        # Files come from other hosts, by redirection: the token stays with the first.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def _refusal(status: int) -> str:
    if status == 404:
        return "there is no such file (HTTP 404)"
    if status in (401, 403):
        return f"not allowed (HTTP {status}): the repository may not exist, or may need HF_TOKEN"
    return f"HTTP {status}"


def _reason(error: BaseException) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return "timed out"
    return f"{type(inner).__name__}: {inner}" if isinstance(inner, BaseException) else str(inner)


class _FirstAnswer(urllib.request.HTTPRedirectHandler):
    """Keeps the headers of the first redirection: the file's size and hash stand there, not at its end."""

    def __init__(self) -> None:
        self.headers: Message | None = None

    def redirect_request(  # noqa: PLR0917 - urllib has it so
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if self.headers is None:
            self.headers = headers
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # pyright: ignore[reportArgumentType]


class _Connection(http.client.HTTPConnection):
    """Quick to see that nobody is there, patient with somebody who is."""

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(_SILENCE)


class _SecureConnection(http.client.HTTPSConnection):
    """The same, encrypted."""

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(_SILENCE)


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)
