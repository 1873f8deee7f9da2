"""Other streams that are open meanwhile: `python others.py PORT COUNT EVERY`, in a process of its own.

It says "ready" once each has told something, takes what comes, and goes when its input ends.
"""

from __future__ import annotations

import json
import selectors
import sys
from pathlib import Path
from socket import socket

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.api.wire import asked, connect, request  # noqa: E402


def main() -> None:
    port, count, every = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    # More than there is time for: they are cancelled when this process goes.
    prompt = json.dumps({"pieces": 1_000_000, "every": every})
    message = request("POST", "/api/agents/teller/stream?on_disconnect=cancel", asked(prompt))
    selector = selectors.DefaultSelector()
    silent: set[socket] = set()
    for _ in range(count):
        connection = connect(port)
        connection.sendall(message)
        selector.register(connection, selectors.EVENT_READ)
        silent.add(connection)
    selector.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if not isinstance(key.fileobj, socket):
                return
            if not (data := key.fileobj.recv(65536)):
                raise SystemExit("the server hung up")
            if key.fileobj in silent and b"event: piece" in data:
                silent.remove(key.fileobj)
                if not silent:
                    print("ready", flush=True)


if __name__ == "__main__":
    main()
