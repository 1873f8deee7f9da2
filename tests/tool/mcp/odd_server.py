"""A server that does what its first argument says, and no SDK would. It speaks the protocol's older form.

It starts in no time: there is nothing in it but Python's own.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA: dict[str, object] = {"type": "object", "properties": {}}
PARAMS: dict[str, dict[str, object]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 1},
    "elicitation/create": {"message": "?", "requestedSchema": SCHEMA},
}


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "inputSchema": SCHEMA, **more}


def listed(cursor: str | None) -> dict[str, object]:
    if HOW == "pages":
        page = int(cursor or 0)
        more = {"nextCursor": str(page + 1)} if page < 3 else {}
        return {"tools": [tool(f"tool{page}")], **more}
    if HOW == "endless":
        return {"tools": [tool("one")], "nextCursor": "again"}
    if HOW == "no schema":
        return {
            "tools": [
                tool("good"),
                {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": 5}}},
            ]
        }
    if HOW == "no list":
        return {"tools": "none"}
    if HOW == "names":
        return {"tools": [tool("files/read"), tool("files.read"), tool("x" * 80)]}
    if HOW == "loses" and LOST:
        return {"tools": [tool("go")]}
    safe = {"annotations": {"readOnlyHint": True}}
    return {"tools": [tool("go"), tool("look", **safe)]}


LOST: list[str] = []


def answer(name: str) -> dict[str, object] | None:
    if HOW == "no result":
        return {"content": "text"}
    if HOW == "huge":
        return {"content": [{"type": "text", "text": "x" * int(sys.argv[2])}]}
    if HOW == "dies once":
        # The file counts how often it was called: the first call is its last.
        file = Path(sys.argv[2])
        before = file.read_text() if file.exists() else ""
        file.write_text(before + "x")
        if not before:
            sys.stderr.write("out of coffee, token " + os.environ.get("TOKEN", "") + "\n")
            sys.stderr.flush()
            os.kill(os.getpid(), 9)
    if HOW == "asks":
        for number, method in enumerate(
            ("sampling/createMessage", "elicitation/create", "roots/list", "ping")
        ):
            send(id=f"q{number}", method=method, params=PARAMS.get(method, {}))
        said = [json.loads(sys.stdin.readline()) for _ in range(4)]
        text = ", ".join(
            [one.get("error", {}).get("message", "ok") for one in sorted(said, key=lambda o: o["id"])]
        )
        return {"content": [{"type": "text", "text": text}]}
    if HOW == "refuses":
        return None
    if HOW == "loses":
        LOST.append("look")
        send(method="notifications/tools/list_changed")
    return {"content": [{"type": "text", "text": f"{name}: {os.getpid()}"}]}


def main() -> None:
    if HOW == "exits":
        sys.stderr.write("line one\nno such database: token " + os.environ.get("TOKEN", "") + "\n")
        sys.exit(3)
    if HOW == "garbage only":
        sys.stdout.write("Welcome to my server!\n")
        sys.stdout.flush()
    for line in sys.stdin:
        if HOW in ("silent", "garbage only"):
            continue
        message: dict[str, Any] = json.loads(line)
        method, number = message.get("method"), message.get("id")
        params: dict[str, Any] = message.get("params") or {}
        if HOW == "garbage":
            sys.stdout.write('log: got something\n\n{"half": \n\xff\n')
            sys.stdout.flush()
        if method == "initialize":
            send(
                id=number,
                result={
                    "protocolVersion": "2025-06-18",
                    "capabilities": {} if HOW == "no tools" else {"tools": {"listChanged": HOW == "loses"}},
                    "serverInfo": {"name": "odd", "version": "1"},
                },
            )
        elif method == "tools/list":
            send(id=number, result=listed(params.get("cursor")))
        elif method == "tools/call":
            send(method="notifications/message", params={"level": "info", "data": "working"})
            result = answer(params["name"])
            if result is None:
                send(id=number, error={"code": -32602, "message": "the moon is in the wrong phase"})
            else:
                send(id=number, result=result)
        elif number is not None:
            send(id=number, error={"code": -32601, "message": "Method not found"})


main()
