"""The gimlet program as a child, spoken to by JSON-RPC over its standard input and output.

A thread reads. It hands every message to whoever waits for it and runs nobody's code, so it is never kept waiting.
The child ends when its input is closed, so it ends with this process, however that ends.
"""

from __future__ import annotations

import atexit
import collections
import json
import os
import sys
import threading
import weakref
from typing import IO, TYPE_CHECKING, Any, Callable, NamedTuple

from .errors import GimletError, ProgramEnded, error_of

if TYPE_CHECKING:
    import subprocess

#: Takes messages, on the reading thread.
Sink = Callable[["Message"], None]


class Answered(NamedTuple):
    """The program answered a request."""

    id: int
    result: Any
    error: GimletError | None


class Asked(NamedTuple):
    """The program asks this process for something, and waits."""

    id: Any
    method: str
    params: dict[str, Any]


class Told(NamedTuple):
    """The program tells this process something."""

    method: str
    params: dict[str, Any]


class Closed(NamedTuple):
    """The program has ended."""

    words: str


Message = Answered | Asked | Told | Closed


def find_program() -> str:
    """Where the gimlet program is: named by GIMLET_BIN, beside this package's Python, or in the PATH."""
    named = os.environ.get("GIMLET_BIN")
    if named:
        return named
    import shutil
    import sysconfig

    schemes = [sysconfig.get_path("scripts")]
    if sys.flags.no_user_site == 0:
        schemes.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in schemes:
        path = os.path.join(folder, "gimlet")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("gimlet")
    if found:
        return found
    raise ProgramEnded(
        "the gimlet program is not installed", error="PROGRAM_MISSING", hint="pip install gimlet-agent, or set GIMLET_BIN to its path"
    )


class Connection:
    """One child and the conversation with it."""

    def __init__(self) -> None:
        import subprocess

        #: The variables the child was started with.
        self.environment = dict(os.environ)
        try:
            # In a session of its own: Ctrl-C in a terminal is for this process, which tells the child what to stop.
            self._process = subprocess.Popen(
                [find_program(), "acp"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramEnded(f"gimlet cannot be started: {error}", error="PROGRAM_MISSING") from error
        self._lock = threading.Lock()
        self._next = 0
        self._waiting: dict[int, Sink] = {}
        self._routes: dict[str, Sink] = {}
        self._closed = False
        self._said: collections.deque[str] = collections.deque(maxlen=20)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input: IO[bytes] = self._process.stdin
        listener = threading.Thread(target=self._listen, args=(self._process.stderr,), name="gimlet-errors", daemon=True)
        listener.start()
        threading.Thread(target=self._read, args=(self._process.stdout, listener), name="gimlet-read", daemon=True).start()
        _open.add(self)
        self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, lambda message: None)

    @property
    def is_alive(self) -> bool:
        return not self._closed

    @property
    def is_busy(self) -> bool:
        """Whether a conversation goes on."""
        return bool(self._routes)

    def _listen(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._said.append(line.decode("utf-8", "replace").rstrip())
        stream.close()

    def _read(self, stream: IO[bytes], listener: threading.Thread) -> None:
        for line in stream:
            try:
                self._take(json.loads(line))
            except ValueError:
                self._said.append(f"not the protocol: {line[:200]!r}")
        stream.close()
        listener.join(5)
        words = "\n".join(self._said)
        with self._lock:
            self._closed = True
            sinks = [*self._waiting.values(), *self._routes.values()]
            self._waiting.clear()
        for sink in sinks:
            sink(Closed(words))

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            with self._lock:
                sink = self._waiting.pop(message["id"], None)
            error = message.get("error")
            told = error_of(error["code"], error["message"], error.get("data")) if error else None
            if sink:
                sink(Answered(message["id"], message.get("result"), told))
            return
        params = message.get("params") or {}
        route = self._routes.get(params.get("sessionId", ""))
        if "id" not in message:
            if route:
                route(Told(method, params))
        elif route:
            route(Asked(message["id"], method, params))
        else:
            self.refuse(message["id"], "the conversation is over")

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                self._input.write(line)
                self._input.flush()
            except (OSError, ValueError):
                pass  # it has ended, which the reading thread tells everybody who waits

    def request(self, method: str, params: dict[str, Any], sink: Sink) -> int:
        """Sends a request; its answer goes to the sink."""
        with self._lock:
            self._next += 1
            id = self._next
            closed = self._closed
            if not closed:
                self._waiting[id] = sink
        if closed:
            sink(Closed("\n".join(self._said)))
        else:
            self._send({"id": id, "method": method, "params": params})
        return id

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Sends a request and waits for its answer."""
        import queue

        answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.request(method, params, answers.put)
        message = answers.get()
        if isinstance(message, Closed):
            raise ended(message)
        assert isinstance(message, Answered)
        if message.error:
            raise message.error
        return message.result

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def answer(self, id: Any, result: Any) -> None:
        self._send({"id": id, "result": result})

    def refuse(self, id: Any, message: str) -> None:
        self._send({"id": id, "error": {"code": -32603, "message": message}})

    def route(self, session: str, sink: Sink) -> None:
        """Sends what belongs to a session to a sink."""
        self._routes[session] = sink

    def leave(self, session: str) -> None:
        self._routes.pop(session, None)

    def close(self, patience: float = 5) -> None:
        """Closes the child's input, which ends it, and waits for its end."""
        _open.discard(self)
        with self._lock:
            try:
                self._input.close()
            except OSError:
                pass
        import subprocess

        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        self._process.kill()

    def _forget(self) -> None:
        """In a fork, the child belongs to the other process, and it must see its input close when that one ends."""
        self._closed = True
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    os.close(stream.fileno())
                except (OSError, ValueError):
                    pass


def ended(message: Closed) -> ProgramEnded:
    last = f":\n{message.words}" if message.words else ""
    return ProgramEnded(f"the gimlet program has ended{last}", error="PROGRAM_ENDED")


_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        connection.close()


def _after_fork() -> None:
    for connection in list(_open):
        connection._forget()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
