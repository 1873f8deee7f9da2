"""What the child does with what it is asked; a scripted server stands where the native one would."""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flyball.engines.llama_cpp.child import Desk, read_frame, serve, write_frame
from tests.patience import PATIENCE

Piece = Callable[[dict[str, Any]], bool]


def delta(text: str | None = None, reason: str | None = None, thinking: str | None = None) -> dict[str, Any]:
    found = {"content": text, "reasoning_content": thinking}
    return {"choices": [{"delta": found, "finish_reason": reason}]}


class ScriptedServer:
    """Answers with the pieces of its script; it waits before each where the test wants it to."""

    params: Any
    listening_address: str

    def __init__(self, *script: dict[str, Any] | Exception) -> None:
        self.script = script
        self.begun = 0
        self.bodies: list[dict[str, Any]] = []
        self.cancelled = 0
        self.step = threading.Semaphore(0)
        self.waits = False

    def handle_chat_completions(self, body: dict[str, Any], piece: Piece) -> None:
        self.begun += 1
        self.bodies.append(body)
        for chunk in self.script:
            if self.waits:
                assert self.step.acquire(timeout=PATIENCE)
            if isinstance(chunk, Exception):
                raise chunk
            if piece(chunk):
                self.cancelled += 1
                return

    def handle_embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        if not body["input"]:
            return {"error": {"code": 400, "message": "nothing"}}
        return {"data": [{"embedding": [1.0, 0.0]} for _ in body["input"]]}


class Asked:
    """A desk, and what it sends."""

    def __init__(self, server: ScriptedServer, parallel: int = 1, silent: tuple[int, ...] = ()) -> None:
        self.sent: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.desk = Desk(server, "key", {"parallel": parallel, "silent": silent}, self.sent.put)

    def ask(self, number: int, op: str = "chat", body: dict[str, Any] | None = None) -> None:
        self.desk.take({"ask": number, "op": op, "body": body or {}})

    def until_done(self) -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        while not frames or "done" not in frames[-1]:
            frames.append(self.sent.get(timeout=PATIENCE))
        return frames


@pytest.mark.parametrize("frames", [[], [{"a": 1}], [{"text": "Ünïcödé ☃\n"}, {"b": [None]}]])
def test_frames_come_back_as_they_were(frames: list[dict[str, Any]]) -> None:
    stream = io.BytesIO()
    for frame in frames:
        write_frame(stream, frame)
    stream.seek(0)
    assert [read_frame(stream) for _ in frames] == frames
    assert read_frame(stream) is None


def test_a_frame_that_is_cut_is_the_end() -> None:
    stream = io.BytesIO()
    write_frame(stream, {"a": "long enough"})
    for length in range(len(stream.getvalue())):
        assert read_frame(io.BytesIO(stream.getvalue()[:length])) is None


def test_a_chunk_is_sent_for_what_it_says_and_not_for_how_far_the_prompt_is() -> None:
    progress = {**delta(), "prompt_progress": {"total": 9}}
    usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 3}, "timings": {"predicted_n": 2}}
    asked = Asked(
        ScriptedServer(progress, delta(thinking="hm"), delta("Hel"), delta("lo"), delta(reason="stop"), usage)
    )
    asked.ask(7)
    assert asked.until_done() == [
        {"id": 7, "chunk": {"thinking": "hm"}},
        {"id": 7, "chunk": {"text": "Hel"}},
        {"id": 7, "chunk": {"text": "lo"}},
        {"id": 7, "chunk": {"reason": "stop"}},
        {"id": 7, "chunk": {"usage": {"prompt_tokens": 3}, "timings": {"predicted_n": 2}}},
        {"id": 7, "done": True},
    ]


def test_under_a_grammar_tokens_that_nobody_sees_are_forbidden() -> None:
    server = ScriptedServer(delta("a"))
    asked = Asked(server, silent=(1, 7))
    grammars: list[dict[str, Any]] = [
        {},
        {"grammar": "root ::= char"},
        {"grammar": "root ::= char", "logit_bias": [["x", 2.0]]},
        {"grammar": "root ::= char", "logit_bias": {"15": -1}},
    ]
    for number, body in enumerate(grammars):
        asked.ask(number, body=body)
        asked.until_done()
    forbidden = [[1, False], [7, False]]
    assert [body.get("logit_bias") for body in server.bodies] == [
        None,
        forbidden,
        [["x", 2.0], *forbidden],
        [("15", -1), *forbidden],
    ]


def test_errors_are_answers_too() -> None:
    asked = Asked(ScriptedServer({"error": {"code": 400, "message": "no"}}))
    asked.ask(1)
    assert asked.until_done() == [
        {"id": 1, "error": {"code": 400, "message": "no"}},
        {"id": 1, "done": True},
    ]
    for raised, code in ((ValueError("messages"), 400), (RuntimeError("broken"), 500)):
        asked = Asked(ScriptedServer(raised))
        asked.ask(2)
        assert asked.until_done()[0] == {"id": 2, "error": {"code": code, "message": str(raised)}}


def test_a_cancelled_call_ends_at_its_next_piece() -> None:
    server = ScriptedServer(delta("a"), delta("b"), delta("c"))
    server.waits = True
    asked = Asked(server)
    asked.ask(1)
    server.step.release()
    assert asked.sent.get(timeout=PATIENCE) == {"id": 1, "chunk": {"text": "a"}}
    asked.desk.take({"cancel": 1})
    server.step.release()
    assert asked.until_done() == [{"id": 1, "done": True}]
    assert server.cancelled == 1


def test_a_call_that_is_cancelled_before_its_turn_is_not_begun() -> None:
    server = ScriptedServer(delta("a"))
    server.waits = True
    asked = Asked(server)
    asked.ask(1)
    asked.ask(2)
    asked.desk.take({"cancel": 2})
    server.step.release()
    assert asked.until_done()[-1] == {"id": 1, "done": True}
    assert asked.until_done() == [{"id": 2, "done": True}]
    assert server.begun == 1


def test_cancelling_what_is_over_does_nothing_to_the_next() -> None:
    asked = Asked(ScriptedServer(delta("a")))
    asked.ask(1)
    asked.until_done()
    asked.desk.take({"cancel": 1})
    asked.ask(1)
    assert asked.until_done()[0] == {"id": 1, "chunk": {"text": "a"}}


def test_vectors() -> None:
    asked = Asked(ScriptedServer())
    asked.ask(1, "embed", {"input": ["a", "b"]})
    assert asked.until_done()[0] == {"id": 1, "chunk": {"data": [[1.0, 0.0], [1.0, 0.0]]}}
    asked.ask(2, "embed", {"input": []})
    assert asked.until_done()[0] == {"id": 2, "error": {"code": 400, "message": "nothing"}}


def test_an_input_that_ends_before_anything_was_asked_ends_the_child() -> None:
    sent: list[dict[str, Any]] = []
    assert serve(io.BytesIO(), sent.append) == 0
    assert sent == []


def test_what_cannot_be_loaded_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", cast("Any", None))
    incoming = io.BytesIO()
    write_frame(incoming, {"load": {"path": "x"}})
    incoming.seek(0)
    sent: list[dict[str, Any]] = []
    assert serve(incoming, sent.append) == 1
    assert sent[0]["failed"]["kind"] == "ModuleNotFoundError"


class Listener(BaseHTTPRequestHandler):
    """What the native server answers over HTTP, for whoever has the key."""

    def do_GET(self) -> None:
        self._answer([{"n_ctx": 64}])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(
            {"error": {"code": 404, "message": self.path}} if self.path == "/none" else {"got": body}
        )

    def _answer(self, answer: Any) -> None:
        key = self.headers["Authorization"].removeprefix("Bearer ")
        data = json.dumps(answer if key in KEYS else {"error": {"code": 401, "message": key}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Says nothing."""


KEYS: set[str] = set()


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Generator[list[ScriptedServer]]:
    """A module in xllamacpp's place: the real one would make this process one that cannot be forked."""
    made: list[ScriptedServer] = []

    class Params(SimpleNamespace):
        def __init__(self) -> None:
            super().__init__(
                model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
            )

    def server(params: Any) -> ScriptedServer:
        KEYS.update(params.api_keys)
        scripted = ScriptedServer(delta("a"))
        scripted.params = params
        scripted.listening_address = f"http://127.0.0.1:{listener.server_port}"
        made.append(scripted)
        return scripted

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setitem(
            sys.modules, "xllamacpp", cast("Any", SimpleNamespace(CommonParams=Params, Server=server))
        )
        yield made
        listener.shutdown()
        thread.join()
    KEYS.clear()


LOAD = {
    "path": "m",
    "context": 64,
    "parallel": 2,
    "threads": 3,
    "prompt_threads": 4,
    "batch": 16,
    "cache_mib": 8,
    "embedding": False,
}


def served(load: dict[str, Any], *asks: dict[str, Any]) -> list[dict[str, Any]]:
    """All that a child says to these frames, until as many calls as were asked are done."""
    reading, writing = os.pipe()
    sent: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    frames: list[dict[str, Any]] = []
    with os.fdopen(reading, "rb") as incoming, os.fdopen(writing, "wb") as outgoing:
        child = threading.Thread(target=serve, args=(incoming, sent.put))
        child.start()
        for frame in ({"load": load}, *asks):
            write_frame(outgoing, frame)
        while not frames or sum("done" in frame for frame in frames) < len(asks):
            frames.append(sent.get(timeout=PATIENCE))
        outgoing.close()
        child.join(PATIENCE)
    return frames


def test_a_model_is_loaded_as_it_was_asked_for(native: list[ScriptedServer]) -> None:
    ready, *rest = served(LOAD, {"ask": 1, "op": "chat", "body": {}})
    assert ready["ready"]["context"] == 64
    assert rest == [{"id": 1, "chunk": {"text": "a"}}, {"id": 1, "done": True}]
    params = native[0].params
    assert (params.model.path, params.n_ctx, params.n_parallel) == ("m", 128, 2)
    assert (params.n_batch, params.n_ubatch) == (16, 16)
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 4)
    assert len(params.api_keys[0]) == 48
    assert not hasattr(params, "embedding")


def test_a_model_for_vectors_takes_a_text_in_one_batch(native: list[ScriptedServer]) -> None:
    served({**LOAD, "embedding": True, "parallel": 1})
    params = native[0].params
    assert (params.embedding, params.pooling_type, params.n_ubatch) == (True, 1, 64)


def test_what_has_no_method_goes_over_the_listener_with_the_key(native: list[ScriptedServer]) -> None:
    frames = served(
        LOAD,
        {"ask": 1, "op": "http", "body": {"path": "/slots"}},
        {"ask": 2, "op": "http", "body": {"path": "/tokenize", "body": {"content": "x"}}},
        {"ask": 3, "op": "http", "body": {"path": "/none", "body": {}}},
    )
    assert native
    said = {frame["id"]: frame for frame in frames if "id" in frame and "done" not in frame}
    assert said[1]["chunk"]["answer"] == [{"n_ctx": 64}]
    assert said[2]["chunk"]["answer"] == {"got": {"content": "x"}}
    assert said[3]["error"]["message"] == "/none"
