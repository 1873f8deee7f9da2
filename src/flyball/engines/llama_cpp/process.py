"""One life of a child process, and the calls it is at.

Three threads serve it, and no event loop: one starts it and reads what it answers until it ends (the system
kills the child when that thread ends, so it must live as long), one writes, one keeps the last lines of what
it says on standard error. Whoever asks gets frames in that first thread, by a function that must not block.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeAlias, cast

from msgspec import Struct

from flyball.core.errors import EngineError, FlyballError
from flyball.engines.llama_cpp import child, faults
from flyball.engines.llama_cpp.options import Located, Options
from flyball.models.gguf import silent_tokens

Frame: TypeAlias = dict[str, Any]
Sink: TypeAlias = Callable[[Frame | FlyballError], None]
"""Given each frame of a call, or the error that ends it; called in the child's own thread."""

_LAST_LINES = 40
_GRACE = 2.0
"""Seconds that an ending child has before it is killed."""
_CERTAIN = 30.0
"""Seconds that the system has to end a child that was killed: a moment, if the machine is not busy."""


class Ready(Struct, frozen=True):
    """A loaded model: which, and how many tokens a call may use."""

    located: Located
    context: int
    parallel: int
    pid: int


class ChildProcess:
    """A child from its start to its end. `ready` is settled once: it is loaded, or why it could not be."""

    def __init__(self, locate: Callable[[], Located], options: Options) -> None:
        self.ready: Future[Ready] = Future()
        # It is running from the start: who stops waiting for it must not cancel it for the others.
        self.ready.set_running_or_notify_cancel()
        self._locate = locate
        self._options = options
        self._guard = threading.Lock()
        self._calls: dict[int, Sink] = {}
        self._next = 0
        self._outgoing: SimpleQueue[Frame | None] = SimpleQueue()
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._late = False
        self._ended = threading.Event()
        self._quiet = threading.Event()
        self._name = "the model"
        self._thread = threading.Thread(target=self._live, name="flyball-llama", daemon=True)

    def start(self) -> None:
        """Begin; `ready` tells how it went."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether it can answer no more."""
        return self._ended.is_set() or self._stopping

    @property
    def open_calls(self) -> int:
        """How many calls wait for an answer."""
        return len(self._calls)

    @property
    def said(self) -> list[str]:
        """The last lines of its standard error."""
        return list(self._said)

    def ask(self, op: str, body: Frame, sink: Sink) -> int:
        """Begin a call; its number.

        Raises:
            EngineError: the child is gone; another may be started.
        """
        with self._guard:
            if self.ended:
                raise faults.gone(self._name, self._status(), self.said, "nobody asked it anything")
            self._next += 1
            number = self._next
            self._calls[number] = sink
        self._outgoing.put({"ask": number, "op": op, "body": body})
        return number

    def give_up(self, number: int) -> None:
        """Forget a call; the child stops working on it as soon as it can. A call that is over stays so."""
        with self._guard:
            running = self._calls.pop(number, None) is not None
        if running:
            self._outgoing.put({"cancel": number})

    def stop(self) -> None:
        """End the child, and wait until it has ended: a moment. One that still loads is killed at once."""
        with self._guard:
            self._stopping = True
        self._outgoing.put(None)
        if not self.ready.done():
            # It reads nothing until it has loaded, and there is nothing to save.
            self._kill()
        if not self._ended.wait(_GRACE):
            self._kill()
            self._ended.wait(_CERTAIN)

    def _live(self) -> None:
        try:
            located = self._locate()
            self._name = located.name
            load = self._options.load(located)
            if not self._options.embedding:
                load["silent"] = silent_tokens(located.path)
            self._run(located, load)
        except FlyballError as error:
            self._fail(error)
        except Exception as error:
            self._fail(EngineError(f"the child process could not be started: {error}", model=self._name))
        finally:
            self._end()

    def _run(self, located: Located, load: Frame) -> None:
        if self._stopping:
            return
        # By its path and with -P: neither flyball nor anything in the current folder is imported.
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(child.__file__)), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # Threads that wait must not spin: beside another busy process that costs most of the speed.
            env={"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", **os.environ},
        )
        self._process = process
        deadline = threading.Timer(self._options.start_seconds, self._too_late)
        deadline.daemon = True
        deadline.start()
        threads = [
            threading.Thread(target=self._listen, args=(process.stderr,), daemon=True),
            threading.Thread(target=self._write, args=(process.stdin, load), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            self._read(cast("BinaryIO", process.stdout), located, load, deadline)
        finally:
            deadline.cancel()
            self._outgoing.put(None)
            process.kill()
            process.wait()
            for thread in threads:
                thread.join()
            for stream in (process.stdin, process.stdout, process.stderr):
                with suppress(OSError):  # what was not written yet finds nobody there any more
                    cast("BinaryIO", stream).close()

    def _read(self, stream: BinaryIO, located: Located, load: Frame, deadline: threading.Timer) -> None:
        while (frame := child.read_frame(stream)) is not None:
            number = frame.get("id")
            if number is not None:
                self._pass_on(number, frame)
            elif "ready" in frame:
                deadline.cancel()
                pid = cast("subprocess.Popen[bytes]", self._process).pid
                self.ready.set_result(Ready(located, frame["ready"]["context"], load["parallel"], pid))
            elif "failed" in frame:
                failed = frame["failed"]
                # It says why on standard error, which another thread reads until it ends: a moment from now.
                self._quiet.wait(_GRACE)
                self._fail(faults.load_failure(failed["kind"], failed["message"], self._name, self.said))

    def _pass_on(self, number: int, frame: Frame) -> None:
        with self._guard:
            sink = self._calls.pop(number, None) if "done" in frame else self._calls.get(number)
        if sink is None:
            return
        if "error" in frame:
            sink(faults.call_failure(frame["error"], self._name, self.said))
        else:
            sink(frame)

    def _listen(self, stream: BinaryIO) -> None:
        for line in stream:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._said.append(text)
        self._quiet.set()

    def _write(self, stream: BinaryIO, load: Frame) -> None:
        try:
            child.write_frame(stream, {"load": load})
            while (frame := self._outgoing.get()) is not None:
                child.write_frame(stream, frame)
            stream.close()
        except OSError:
            # The child is gone: whoever reads from it sees that too, and tells those who wait.
            return

    def _too_late(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def _status(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def _fail(self, error: FlyballError) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)

    def _end(self) -> None:
        with self._guard:
            self._ended.set()
            left, self._calls = self._calls, {}
        if self._late:
            self._fail(faults.too_slow(self._name, self._options.start_seconds))
        self._fail(faults.gone(self._name, self._status(), self.said, "it was loading"))
        for sink in left.values():
            sink(faults.gone(self._name, self._status(), self.said, "it was answering"))
