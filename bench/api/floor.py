"""The floor of first bytes: a bare server on uvloop that tells pieces, and does nothing else.

It runs in a process of its own (`python floor.py`), and prints its port. What is sent to it is looked at for
no more than how many pieces are wanted, and how often.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from random import uniform

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def _tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        asked = json.loads(json.loads(await reader.readexactly(length))["messages"][0]["content"])
        writer.write(HEAD)
        for _ in range(asked["pieces"]):
            await asyncio.sleep(asked["every"] * uniform(0.5, 1.5))
            piece = b'event: piece\ndata: {"text":"%d "}\n\n' % time.monotonic_ns()
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        return
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(_tell, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
