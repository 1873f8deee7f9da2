"""What runs in the child process: llama.cpp's server, spoken to in frames.

This file is run by its path and imports nothing of flyball: the child starts as fast as Python does, and has
only what it needs. A frame is four bytes of length and a JSON object:

    to the child     {"load": {...}}                       once, first
                     {"ask": 7, "op": "chat", "body": {}}  begin a call
                     {"cancel": 7}                         give it up
    from the child   {"ready": {"context": 8192}}          the model is loaded
                     {"failed": {"kind": ..., "message": ...}}  it could not be
                     {"id": 7, "chunk": {...}}             a piece of an answer
                     {"id": 7, "error": {...}}             the call failed
                     {"id": 7, "done": true}               nothing more comes

When its standard input ends, its parent is gone, and it ends too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, cast

_LENGTH = struct.Struct(">I")
_MEAN_POOLING = 1
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG."""
_LAST_WORDS = 0.25
"""Seconds between a failure and the end."""


def write_frame(stream: BinaryIO, frame: dict[str, Any]) -> None:
    """Write one frame, and see that it leaves."""
    data = json.dumps(frame, separators=(",", ":")).encode("utf-8")
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """The next frame; None where the other end is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


def make_server(load: dict[str, Any], key: str) -> Any:
    """Load the model."""
    from importlib import import_module

    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = load["path"]
    # n_ctx is shared out evenly: what one call may use is `context`.
    params.n_ctx = load["context"] * load["parallel"]
    params.n_parallel = load["parallel"]
    # A call is given up, and others get their next token, between two batches: short ones keep both waits
    # short.
    params.n_batch = params.n_ubatch = load["batch"]
    params.cpuparams.n_threads = load["threads"]
    params.cpuparams_batch.n_threads = load["prompt_threads"]
    params.cache_ram_mib = load["cache_mib"]
    params.use_jinja = True
    params.fit_params = False
    params.ui = False
    params.verbosity = 1
    # It listens on this machine whether we want it or not: a key that nobody knows keeps everybody out.
    params.api_keys = [key]
    if load["embedding"]:
        params.embedding = True
        params.pooling_type = _MEAN_POOLING
        params.n_batch = params.n_ubatch = params.n_ctx
    return xllamacpp.Server(params)


def held(body: dict[str, Any], silent: Sequence[int]) -> dict[str, Any]:
    """A call whose answer follows a grammar, without tokens that the grammar reads and nobody sees."""
    if not body.get("grammar") or not silent:
        return body
    asked: Any = body.get("logit_bias") or []
    if isinstance(asked, dict):
        asked = list(cast("dict[str, Any]", asked).items())
    return {**body, "logit_bias": [*asked, *([token, False] for token in silent)]}


class Desk:
    """Answers what is asked, as many calls at once as there are slots; the others wait in order."""

    def __init__(
        self, server: Any, key: str, load: dict[str, Any], send: Callable[[dict[str, Any]], None]
    ) -> None:
        self._server = server
        self._key = key
        self._silent: Sequence[int] = load.get("silent") or ()
        self._send = send
        self._slots = ThreadPoolExecutor(load["parallel"], "slot")
        # Questions that need no slot do not wait for one.
        self._quick = ThreadPoolExecutor(2, "quick")
        self._open: set[int] = set()
        self._cancelled: set[int] = set()

    def take(self, frame: dict[str, Any]) -> None:
        """Begin a call, or give one up."""
        if "cancel" in frame:
            if frame["cancel"] in self._open:
                self._cancelled.add(frame["cancel"])
            return
        number, op, body = frame["ask"], frame["op"], frame["body"]
        self._open.add(number)
        (self._quick if op == "http" else self._slots).submit(self._answer, number, op, body)

    def _answer(self, number: int, op: str, body: dict[str, Any]) -> None:
        try:
            if number not in self._cancelled:
                getattr(self, f"_{op}")(number, body)
        except Exception as error:
            # Whatever it is: the caller waits for an answer, and this is one.
            wrong = {"code": 400 if isinstance(error, ValueError) else 500, "message": str(error)}
            self._send({"id": number, "error": wrong})
        finally:
            self._open.discard(number)
            self._cancelled.discard(number)
            self._send({"id": number, "done": True})

    def _chat(self, number: int, body: dict[str, Any]) -> None:
        def piece(chunk: dict[str, Any]) -> bool:
            if number in self._cancelled:
                return True
            if "error" in chunk:
                self._send({"id": number, "error": chunk["error"]})
            elif slim := _slim(chunk):
                self._send({"id": number, "chunk": slim})
            return False

        self._server.handle_chat_completions(held(body, self._silent), piece)

    def _embed(self, number: int, body: dict[str, Any]) -> None:
        answer = self._server.handle_embeddings(body)
        if "error" in answer:
            self._send({"id": number, "error": answer["error"]})
        else:
            self._send({"id": number, "chunk": {"data": [item["embedding"] for item in answer["data"]]}})

    def _http(self, number: int, body: dict[str, Any]) -> None:
        """What the server has no method for: tokenize, apply-template, slots."""
        answer = ask_http(self._server, self._key, body["path"], body.get("body"))
        if isinstance(answer, dict) and "error" in answer:
            self._send({"id": number, "error": answer["error"]})
        else:
            self._send({"id": number, "chunk": {"answer": answer}})


def ask_http(server: Any, key: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the server's own listener, on this machine."""
    from http.client import HTTPConnection

    address: str = server.listening_address.rpartition("/")[2]
    with contextlib.closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request(
            "GET" if body is None else "POST",
            path,
            None if body is None else json.dumps(body),
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        return json.loads(connection.getresponse().read())


def _slim(chunk: dict[str, Any]) -> dict[str, Any]:
    """What the parent reads of a chunk; nothing where it only says how far the prompt is."""
    slim: dict[str, Any] = {key: chunk[key] for key in ("usage", "timings") if chunk.get(key)}
    for choice in chunk.get("choices", ()):
        delta: dict[str, Any] = choice.get("delta") or {}
        found: dict[str, Any] = {
            "text": delta.get("content"),
            "thinking": delta.get("reasoning_content"),
            "reason": choice.get("finish_reason"),
        }
        slim.update({key: value for key, value in found.items() if value})
    return slim


def die_with(parent: int) -> None:
    """Let the system kill this process when the thread that started it ends; end now if it has."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def serve(incoming: BinaryIO, send: Callable[[dict[str, Any]], None]) -> int:
    """Load the model that the first frame names and answer until the input ends; the exit status."""
    first = read_frame(incoming)
    if first is None:
        return 0
    load: dict[str, Any] = first["load"]
    key = os.urandom(24).hex()
    try:
        server = make_server(load, key)
        context = ask_http(server, key, "/slots")[0]["n_ctx"]
    except Exception as error:
        send({"failed": {"kind": type(error).__name__, "message": str(error)}})
        return 1
    desk = Desk(server, key, load, send)
    send({"ready": {"context": context, "address": server.listening_address}})
    while (frame := read_frame(incoming)) is not None:
        desk.take(frame)
    return 0


def main() -> None:
    """Take the pipes, keep native code's own output off them, and serve."""
    die_with(int(sys.argv[1]))
    # Ctrl-C is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    guard = threading.Lock()

    def send(frame: dict[str, Any]) -> None:
        try:
            with guard:
                write_frame(outgoing, frame)
        except OSError:
            os._exit(0)

    status = serve(incoming, send)
    if status:
        # What went wrong is printed by a thread of llama.cpp's own, which cannot be waited for: give it a
        # moment.
        time.sleep(_LAST_WORDS)
    # Without any clean-up: there is nothing to save, and native destructors may wait for threads that never
    # end.
    os._exit(status)


if __name__ == "__main__":
    main()
