"""Clients that do not keep to the rules are told what is wrong, whatever they send; and nobody else notices.

A real server on a socket, and bytes. Every answer is a problem with a code, or the document that was asked
for; nothing is written to standard error, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from httpx import AsyncClient

from flyball import Agent
from flyball.adapters.http.connection import PatientProtocol
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.logs import Log
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from tests.adapters.http.raw import asked, head, post, prompt, wire
from tests.adapters.http.running import ASK, events_in, followed, here, problem
from tests.patience import PATIENCE

REQUESTS = "/api/agents/echo/requests"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(autouse=True)
def _nothing_is_complained_about(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    assert capfd.readouterr().err == ""


async def until(reached: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what has to come."""
    async with asyncio.timeout(PATIENCE):
        while not await reached():
            continue


async def until_streams(client: AsyncClient, count: int) -> None:
    """Wait until so many streams are open."""

    async def reached() -> bool:
        return f"\nflyball_http_streams {count:.1f}\n" in (await client.get("/metrics")).text

    await until(reached)


async def serves(client: AsyncClient) -> None:
    """The server does what it always does."""
    answer = await client.post(REQUESTS, json=ASK)
    assert answer.json()["content"] == "You said: How much?"


# What is no HTTP

MALFORMED = {
    "bytes": b"\x00\x01\x02\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
    "a version that there is not": b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a method that there is not": head("FOO /health"),
    "a long method": head(f"{'F' * 5000} /health"),
    "CONNECT": b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a NUL in the path": b"GET /api/loops/a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "eight bits in the path": b"GET /api/loops/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "control characters in a header": b"GET /health HTTP/1.1\r\nX-Request-Id: \x01\r\n\r\n",
    "a header over two lines": b"GET /health HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
    "bare line feeds": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "bare carriage returns": b"GET /health HTTP/1.1\rHost: localhost\r\r",
    "a length below none": head(f"POST {REQUESTS}", JSON, "Content-Length: -1"),
    "a length with a sign": head(f"POST {REQUESTS}", JSON, "Content-Length: +3") + b"abc",
    "a length without end": head(f"POST {REQUESTS}", JSON, f"Content-Length: {'9' * 40}"),
    "a chunk of no size": head(f"POST {REQUESTS}", JSON, CHUNKED) + b"zz\r\nabc\r\n",
}
SMUGGLED = {
    "length and chunks": head(f"POST {REQUESTS}", JSON, "Content-Length: 5", CHUNKED),
    "chunks and length": head(f"POST {REQUESTS}", JSON, CHUNKED, "Content-Length: 5"),
    "two lengths": head(f"POST {REQUESTS}", JSON, "Content-Length: 5", "Content-Length: 6"),
    "chunks that are none": head(f"POST {REQUESTS}", JSON, "Transfer-Encoding: xchunked"),
    "chunks, and then not": head(f"POST {REQUESTS}", JSON, "Transfer-Encoding: chunked, identity"),
    "a space before the colon": head(f"POST {REQUESTS}", JSON, "Transfer-Encoding : chunked"),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_http_is_a_problem_too(data: bytes) -> None:
    async with here() as (client, _):
        async with wire(client) as connection:
            await connection.send(data)
            reply = await connection.reply()
            assert (reply.status, reply.code) == (400, "API_MALFORMED")
            assert await connection.closed() == b""
        await serves(client)


@pytest.mark.parametrize("data", SMUGGLED.values(), ids=SMUGGLED)
async def test_no_request_is_hidden_in_another(data: bytes) -> None:
    async with here() as (client, _):
        async with wire(client) as connection:
            await connection.send(data + b"0\r\n\r\n" + head("GET /api/agents"))
            reply = await connection.reply()
            assert (reply.status, reply.code) == (400, "API_MALFORMED")
            assert await connection.closed() == b""
        assert 'operation="list_agents"' not in (await client.get("/metrics")).text


@pytest.mark.parametrize(
    "data",
    [
        head("GET /health", f"X: {'a' * 70_000}"),
        head("GET /health", *[f"X{number}: a" for number in range(10_000)]),
        head(f"GET /{'a' * 70_000}"),
    ],
    ids=["a long header", "many headers", "a long path"],
)
async def test_a_head_that_is_too_large(data: bytes) -> None:
    async with here() as (client, _):
        reply = await asked(client, data)
        assert (reply.status, reply.code) == (431, "API_HEAD_TOO_LARGE")
        await serves(client)


async def test_who_asks_for_another_protocol_is_answered_in_this_one() -> None:
    async with here() as (client, _):
        for upgrade in ("h2c", "websocket"):
            data = head("GET /api/agents", "Connection: Upgrade", f"Upgrade: {upgrade}")
            assert (await asked(client, data)).status == 200


async def test_requests_one_after_another_without_waiting() -> None:
    async with here() as (client, _), wire(client) as connection:
        many = [post(REQUESTS, prompt(f"number {number}")) for number in range(50)]
        await connection.send(b"".join(many))
        said = [json.loads((await connection.reply()).body)["content"] for _ in many]
        assert said == [f"You said: number {number}" for number in range(50)]


async def test_garbage_after_a_request_does_not_answer_it() -> None:
    async with here() as (client, _), wire(client) as connection:
        await connection.send(post(REQUESTS, prompt("hello")) + b"\x00\x01 garbage\r\n\r\n")
        assert b"API_MALFORMED" not in await connection.closed()
        await serves(client)


# What is no JSON, or another than was wanted

BAD_JSON = [
    b"",
    b"{",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{'messages': 1}",
    b'{"messages": NaN}',
    b'{"messages": 1e999}',
    b'{"messages": ' + b"9" * 5000 + b"}",
    b'{"messages": "\\ud800"}',
    b'{"messages": "\x00"}',
    b"[" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"{} {}",
]
BAD_DOCUMENTS: list[Any] = [
    None,
    True,
    1,
    "x",
    [],
    [{}],
    {"messages": None},
    {"messages": {}},
    {"messages": [None]},
    {"messages": [[]]},
    {"messages": [{"role": "user", "content": 1}]},
    {"messages": [{"role": "nobody", "content": "x"}]},
    {"messages": [{"role": "user", "parts": [{"kind": "nothing"}]}]},
    {"messages": [{"role": "user", "parts": []}]},
    {"messages": [{"role": "tool", "content": "x"}]},
    {**ASK, "mode": "nothing"},
    {**ASK, "mode": ["chat"]},
    {**ASK, "hints": []},
    {**ASK, "hints": {"timeout": -1}},
    {**ASK, "hints": {"max_tokens": "many"}},
    {**ASK, "output": {"schema": {"type": "nothing"}}},
    {**ASK, "output": {"schema": {"$ref": "http://127.0.0.1:1/x"}}},
    {**ASK, "tools": "add"},
    {**ASK, "tools": ["nothing"]},
    {**ASK, "metadata": []},
    {**ASK, "request_id": 1},
]


def nested(depth: int) -> Any:
    """So many lists in each other."""
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize("path", ["requests", "stream", "loops"])
async def test_what_is_no_request_is_told_what_is_wrong_with_it(path: str) -> None:
    async with here() as (client, _):
        url = f"/api/agents/echo/{path}"
        for body in BAD_JSON:
            reply = await asked(client, post(url, body))
            assert (reply.status, reply.code) == (400, "API_MALFORMED"), body[:80]
        for document in [*BAD_DOCUMENTS, {**ASK, "metadata": {"deep": nested(900)}}]:
            reply = await asked(client, post(url, json.dumps(document).encode()))
            if path == "stream" and reply.status == 200:
                *_, last = events_in(reply.body.decode())
                assert (last.event, last.data["status"]) == ("problem", 422), document
            else:
                assert reply.status == 422, document
                assert reply.code.startswith("CONFIG_")
        await serves(client)


CHAT: dict[str, Any] = {"model": "echo", "messages": [{"role": "user", "content": "x"}]}
NO_MESSAGES: list[Any] = [None, {}, [], [1], [{}], [{"role": "nobody"}]]
NO_CONTENTS: list[Any] = [1, {}, [1], [{"type": "x"}]]
BAD_FOR_OPENAI: dict[str, list[Any]] = {
    "chat/completions": [
        *[None, True, 1, "x", [], {}, {"model": "echo"}, {"model": 1, "messages": []}],
        *[{**CHAT, "model": name} for name in ("", "nothing", None, ["echo"], "' OR 1=1 --")],
        *[{**CHAT, "messages": wrong} for wrong in NO_MESSAGES],
        *[{**CHAT, "messages": [{"role": "user", "content": wrong}]} for wrong in NO_CONTENTS],
        {**CHAT, "stream": "yes"},
        {**CHAT, "temperature": "hot"},
        {**CHAT, "tools": [1]},
        {**CHAT, "n": 9**99},
        {**CHAT, "messages": [{"role": "tool", "tool_call_id": "x", "content": "x"}]},
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}},
        {**CHAT, "metadata": {"deep": nested(900)}},
    ],
    "responses": [
        *[None, 1, [], {}, {"model": "echo", "input": 1}, {"model": "echo", "input": [1]}],
        {"model": "echo", "input": [{"type": "nothing"}]},
        {"model": "echo", "input": "x", "previous_response_id": "' OR 1=1 --"},
        {"model": "echo", "input": "x", "previous_response_id": 1},
        {"model": "echo", "input": "x", "tools": {}},
    ],
    "embeddings": [None, 1, [], {}, {"model": "echo"}, {"model": "echo", "input": {}}, {"input": [[]]}],
}


@pytest.mark.parametrize("path", BAD_FOR_OPENAI)
async def test_what_is_no_request_of_openais_is_told_so(path: str) -> None:
    async with here() as (client, _):
        for body in BAD_JSON:
            assert (await asked(client, post(f"/v1/{path}", body))).status == 400, body[:80]
        for document in BAD_FOR_OPENAI[path]:
            reply = await asked(client, post(f"/v1/{path}", json.dumps(document).encode()))
            assert reply.status in (400, 404, 422), (document, reply)
            assert reply.code
        await serves(client)


GIVEN = {"tool_name": "pay", "tool_call_id": "c", "content": "x"}
WRITES: dict[str, list[Any]] = {
    "signals": [
        {},
        {"type": "nothing"},
        {"type": 1},
        {"type": "cancel", "text": 1},
        {"type": "approve", "callId": "c"},
        [],
        None,
    ],
    "results": [
        {},
        {"results": []},
        {"results": [1]},
        {"results": [{"call_id": 1}]},
        {"results": [{**GIVEN, "isError": True}]},
        None,
    ],
    "resume": [{"retry": 1}, {"retry": "yes"}, {"nothing": 1}, [], None],
    "fork": [{}, {"turn": -1}, {"turn": "1"}, {"turn": 10**9}, {"turn": 0, "loop_id": "a/b"}, None],
}


@pytest.mark.parametrize("what", WRITES)
async def test_what_is_said_to_loops_has_its_form(what: str) -> None:
    async with here() as (client, service):
        await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "it"})
        before = await service.journal.read("it")
        for document in WRITES[what]:
            reply = await asked(client, post(f"/api/loops/it/{what}", json.dumps(document).encode()))
            assert (reply.status, reply.code) == (422, "CONFIG_INVALID_REQUEST"), document
        for body in BAD_JSON:
            if body or what != "resume":  # which may be asked for without one
                assert (await asked(client, post(f"/api/loops/it/{what}", body))).status == 400
        assert await service.journal.read("it") == before  # and nothing is half-written


# Too much, too slow, not at all


async def test_a_body_that_is_too_large_is_not_waited_for() -> None:
    async with here(limits=Limits(body=1000)) as (client, _):
        whole = prompt("x" * (1000 - len(prompt(""))))
        assert len(whole) == 1000
        assert (await asked(client, post(REQUESTS, whole))).status == 200
        said = await asked(client, head(f"POST {REQUESTS}", JSON, "Content-Length: 1001"))
        assert (said.status, said.code) == (413, "API_TOO_LARGE")
        for size in (1001, 100_000):  # said and sent, and sent in chunks without being said
            assert (await asked(client, post(REQUESTS, b" " * size))).status == 413
            data = head(f"POST {REQUESTS}", JSON, CHUNKED) + b"%x\r\n%s\r\n0\r\n\r\n" % (size, b" " * size)
            assert (await asked(client, data)).status == 413
        chunks = b"".join([b"1\r\n%c\r\n" % byte for byte in whole])
        data = head(f"POST {REQUESTS}", JSON, CHUNKED) + chunks + b"0\r\n\r\n"
        assert (await asked(client, data)).status == 200


async def test_a_head_that_does_not_come_is_not_waited_for() -> None:
    async with here(limits=Limits(head_seconds=0.05)) as (client, _):
        for some in (b"", b"GET", b"GET /health HTTP/1.1\r\nHost: local", head("GET /health")[:-2]):
            async with wire(client) as connection:
                await connection.send(some)
                assert await connection.closed() == b""


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with here(limits=Limits(body_seconds=0.05)) as (client, _), wire(client) as connection:
        await connection.send(post(REQUESTS, prompt("hello"))[:-5])
        reply = await connection.reply()
        assert (reply.status, reply.code) == (408, "API_TOO_SLOW")
        assert await connection.closed() == b""


async def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for() -> None:
    limits = Limits(head_seconds=0.05)
    async with here(limits=limits) as (client, _), wire(client) as connection:
        await connection.send(head("POST /nothing/here", JSON, "Content-Length: 100") + b"{")
        assert (await connection.reply()).status == 404
        assert await connection.closed() == b""


async def test_a_connection_that_says_nothing_more_is_closed() -> None:
    async with here(limits=Limits(idle_seconds=1)) as (client, _), wire(client) as connection:
        await connection.send(head("GET /health"))
        assert (await connection.reply()).status == 200
        assert await connection.closed() == b""


async def test_who_takes_nothing_of_a_stream_is_let_go_of() -> None:
    async def much(request: Request) -> AsyncGenerator[str]:
        for _ in range(1000):
            yield "x" * 100_000

    async def whole(request: Request) -> str:
        return "x"

    teller = Agent(FunctionEngine(whole, much), name="teller")
    limits = Limits(stuck_seconds=0.05)
    async with here(teller, limits=limits) as (client, _), wire(client, 1000) as connection:
        await connection.send(post("/api/agents/teller/stream", prompt("all")))
        await connection.reader.readuntil(b"event: begun")
        await until_streams(client, 0)


async def test_who_goes_away_in_the_middle_leaves_nothing_behind() -> None:
    async with here() as (client, _):
        await serves(client)
        whole = post(REQUESTS, prompt("hello"))
        for cut in range(0, len(whole), 7):
            async with wire(client) as connection:
                await connection.send(whole[:cut])
                connection.vanish()
        await serves(client)


async def test_who_goes_away_is_gone_for_all_that_was_asked_for() -> None:
    async with here() as (client, _):
        await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "it"})
        async with wire(client) as connection:
            await connection.send(head("GET /api/loops/it/stream") + head("GET /health"))
            await until_streams(client, 1)
            connection.vanish()
            await until_streams(client, 0)


async def test_a_thousand_who_come_and_vanish() -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def slowly(request: Request) -> str:
        begun.release()
        await go.wait()
        return "done"

    async def in_pieces(request: Request) -> AsyncGenerator[str]:
        yield "so "
        begun.release()
        await go.wait()
        yield "done"

    async def echo(request: Request) -> str:
        return f"You said: {request.messages[-1].text}"

    slow = Agent(FunctionEngine(slowly, in_pieces), name="slow")
    whole = post("/api/agents/slow/requests", prompt("hello"))
    ways = [
        b"",
        b"\x16\x03\x01",
        whole[:30],
        whole[:-3],
        head("GET /api/loops/it/stream"),
        post("/api/agents/slow/stream", prompt("hello")),
        post("/api/agents/slow/stream?on_disconnect=cancel", prompt("hello")),
        whole,
        post("/api/agents/slow/requests?on_disconnect=cancel", prompt("hello")),
        post("/api/agents/slow/loops", prompt("hello")),
    ]
    async with here(slow, Agent(FunctionEngine(echo), name="echo")) as (client, service):
        await client.post("/api/agents/slow/loops", json=ASK, params={"loop_id": "it"})
        await serves(client)
        before = await _left(client)
        for _ in range(100 // 10):
            for way in ways:
                await asyncio.gather(*[_come_and_vanish(client, way) for _ in range(10)])
        go.set()
        await until_streams(client, 0)

        async def is_as_before() -> bool:
            return all(now <= then for now, then in zip(await _left(client), before, strict=True))

        await until(is_as_before)
        for loop_id in await service.journal.loops():  # and what had begun came to its end
            assert (await service.standing(loop_id))[1]
        await serves(client)


async def _come_and_vanish(client: AsyncClient, data: bytes) -> None:
    async with wire(client) as connection:
        await connection.send(data)
        connection.vanish()


async def _left(client: AsyncClient) -> tuple[int, int, int]:
    """What a server has: connections, descriptors and tasks."""
    await serves(client)
    gc.collect()
    connections = sum([isinstance(one, PatientProtocol) for one in gc.get_objects()])
    return connections, len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())


# Names

NAMES = [
    "..",
    "%2e%2e",
    "../../etc/passwd",
    "' OR 1=1 --",
    '"; DROP TABLE events; --',
    "a.>",
    "*",
    ">",
    "$JS.API.>",
    "a\r\nX-Evil: 1",
    "a\0b",
    "\x1b[31m",
    "\u202e\u2028💩",
    "a" * 5000,
    "%ff%fe",
    "%zz",
    "{loop_id}",
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_a_name_is_only_a_name(name: str) -> None:
    async with here() as (client, _):
        paths = [path for path in (await client.get("/openapi.json")).json()["paths"] if "{" in path]
        assert len(paths) > 10
        # A channel may be called anything, and what is told there has no end.
        paths.remove("/api/channels/{channel_type}/{channel_id}/responses")
        for path in paths:
            for written in {quote(name, safe=""), quote(name, safe="%"), quote(name)}:
                where = path.partition("{")[0] + written + path.rpartition("}")[2]
                for data in (head(f"GET {where}"), post(where, b'{"type":"cancel","turn":0,"messages":[]}')):
                    reply = await asked(client, data)
                    assert reply.status in (400, 404, 405, 422), (where, reply)
                    assert reply.code
                    assert b"evil" not in reply.raw.lower()
        await serves(client)


@pytest.mark.parametrize("name", ["a\r\nX-Evil: 1", "a\0b", "ü", "a b", "' OR 1=1 --"])
async def test_a_loop_of_any_name_is_followed_and_no_header_is_made_of_it(name: str) -> None:
    from flyball.orchestrate.contracts import SystemRequest

    async with here() as (client, service):
        await service.handle("echo", SystemRequest.from_json(ASK), loop_id=name)
        where = f"/api/loops/{quote(name, safe='')}"
        for path in ("", "/events", "/stream", "/response", "/course", "/why"):
            reply = await asked(client, head(f"GET {where}{path}"))
            assert reply.status == 200
            assert b"evil" not in reply.raw.lower()
        reply = await asked(client, post(f"{where}/fork", b'{"turn": 0, "prompt": "again"}'))
        assert reply.status == 201
        chosen = await client.post(REQUESTS, json=ASK, params={"loop_id": name})
        assert problem(chosen) == (422, "CONFIG_INVALID_REQUEST")


INJECTED = [
    'x\n\nevent: over\ndata: {"stage": "complete"}\n\n',
    "x\r\rid: 7\rretry: 1\r\r",
    "x\u2028data: y\u2029\x85\x0b\x0c",
    ": still here\n\n",
    "\0\x1b[31m</script>",
]


@pytest.mark.parametrize("text", INJECTED, ids=range(len(INJECTED)))
async def test_what_a_model_says_is_no_event_of_ours(text: str) -> None:
    async with here() as (client, _):
        given = {"messages": [{"role": "user", "content": text}]}
        streamed = await client.post("/api/agents/echo/stream", json=given)
        for body in (streamed.content, await _followed(client, streamed.headers["flyball-loop"])):
            for frame in body.split(b"\n\n")[:-1]:
                lines = frame.splitlines()
                assert frame.decode().splitlines() == [line.decode() for line in lines]  # as some read them
                names = [line.partition(b": ")[0] for line in lines]
                assert names in ([b"event", b"data"], [b"id", b"event", b"data"]), frame
                assert not set(frame) & set(b"\r\0\x0b\x0c\x1b")
                json.loads(lines[-1].partition(b": ")[2])
        pieces = [told.data for told in events_in(streamed.text) if told.event == "piece"]
        said = "".join([piece["text"] for piece in pieces if piece["stream"] == "text"])
        assert said == f"You said: {text}"


async def _followed(client: AsyncClient, loop_id: str) -> bytes:
    assert await followed(client, f"/api/loops/{loop_id}/stream")
    return (await client.get(f"/api/loops/{loop_id}/stream")).content


async def test_nobody_writes_lines_of_their_own_into_the_log() -> None:
    out = io.StringIO()
    evil = 'x\n{"level":"error"}\r\n\x1b[31m'
    async with here(log=Log(out)) as (client, _):
        for path in (f"/{quote(evil)}", f"/api/loops/{quote(evil)}/events", f"/api/agents?x={quote(evil)}"):
            await asked(client, head(f"GET {path}", "X-Request-Id: abc def", "traceparent: nothing"))
        await asked(client, post(REQUESTS, json.dumps({**ASK, "request_id": evil}).encode()))
    lines = out.getvalue().splitlines()
    assert [json.loads(line)["level"] for line in lines] == ["info"] * 4
    assert "\x1b" not in out.getvalue()


# Methods, and other sites


async def test_every_path_says_how_it_is_asked() -> None:
    async with here() as (client, _):
        document = (await client.get("/openapi.json")).json()
        for path, operations in document["paths"].items():
            known = {method.upper() for method in operations}
            where = path.replace("{", "").replace("}", "")
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"):
                if method in known:
                    continue
                answer = await client.request(method, where)
                assert answer.status_code == 405, (method, path)
                assert answer.headers["allow"] == ", ".join(sorted(known))
                if method != "HEAD":
                    told = answer.json()
                    assert told.get("error", told)["code"] == "API_METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "headers",
    [
        "Host: evil.example",
        "Host: localhost.evil.example",
        "Host: 127.0.0.1.nip.io",
        "Host: [",
        "Host: localhost, evil.example",
        "Host: localhost\r\nHost: evil.example",
        "X: no host at all",
        "Host: localhost\r\nOrigin: http://[",
        "Host: localhost\r\nOrigin: \xff\xfe",
        "Host: localhost\r\nOrigin: localhost",
        "Host: localhost\r\nOrigin: http://localhost.evil.example",
        "Host: localhost\r\nOrigin: http://evil@localhost",
        "Host: localhost\r\nOrigin: http://localhost/",
        "Host: localhost\r\nOrigin: file://",
    ],
)
async def test_pages_of_other_sites_do_not_come_in(headers: str) -> None:
    async with here() as (client, service):
        data = f"POST {REQUESTS} HTTP/1.1\r\n{headers}\r\nContent-Type: text/plain\r\n"
        body = prompt("hello")
        sent = data.encode("latin-1") + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        reply = await asked(client, sent)
        assert (reply.status, reply.code) == (403, "API_FORBIDDEN")
        assert not await service.journal.loops()


async def test_nobody_says_for_themselves_where_they_come_from() -> None:
    async with here(limits=Limits(rate=2)) as (client, _):
        statuses = [
            (await asked(client, head("GET /api/agents", f"X-Forwarded-For: 10.0.0.{number}"))).status
            for number in range(4)
        ]
        assert statuses == [200, 200, 429, 429]
