"""A proxy in front of the model server that counts the tokens of every contender in the same way.

It passes every request on as it is; a streamed one is asked for its usage. Where a contender hangs up before the server
told the usage, the server counts the prompt, and the pieces that were sent are taken for one token each.
"""

import http.client
import json
import select
import socket
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection", "host", "content-length"}
COUNTED = ("/chat/completions", "/completions", "/completion", "/messages", "/responses")


class Counter:
    """Counts the requests and tokens since the last `start`."""

    def __init__(self, server: str):
        self.server = server
        self.lock = threading.Condition()
        self.open = 0
        self.start()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def start(self) -> None:
        with self.lock:
            self.sums = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0, "counted_here": 0, "refused": 0}

    def add(self, **more: int) -> None:
        with self.lock:
            for key, value in more.items():
                self.sums[key] += value

    def opened(self, by: int) -> None:
        with self.lock:
            self.open += by
            self.lock.notify_all()

    def read(self) -> dict:
        """The sums, once every request of a contender that is gone has been counted."""
        with self.lock:
            self.lock.wait_for(lambda: self.open == 0, timeout=30)
            return dict(self.sums)

    def connect(self) -> http.client.HTTPConnection:
        url = urllib.parse.urlsplit(self.server)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        return kind(url.hostname, url.port, timeout=3600)

    def ask(self, path: str, body: dict) -> dict:
        link = self.connect()
        try:
            link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(link.getresponse().read())
        finally:
            link.close()

    def prompt_tokens(self, asked: dict) -> int:
        """The tokens of a prompt whose usage was never told."""
        try:
            prompt = self.ask("/apply-template", {"messages": asked["messages"]})["prompt"]
            return len(self.ask("/tokenize", {"content": prompt, "parse_special": True})["tokens"])
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            return len(json.dumps(asked.get("messages", asked.get("prompt", "")))) // 4


def usage_in(told) -> tuple[int, int] | None:
    usage = told.get("usage") if isinstance(told, dict) else None
    if not isinstance(usage, dict):
        return None
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    reply = usage.get("completion_tokens", usage.get("output_tokens"))
    return (prompt, reply) if isinstance(prompt, int) and isinstance(reply, int) else None


def handler(counter: Counter):
    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.forward("GET")

        def do_POST(self):
            counter.opened(1)
            try:
                self.forward("POST")
            finally:
                counter.opened(-1)

        def forward(self, method: str):
            self.close_connection = True
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = None
            if method == "POST" and urllib.parse.urlsplit(self.path).path.endswith(COUNTED):
                try:
                    asked = json.loads(body)
                except ValueError:
                    asked = None
            if isinstance(asked, dict) and asked.get("stream") and "messages" in asked and "/chat/" in self.path:
                asked["stream_options"] = {**(asked.get("stream_options") or {}), "include_usage": True}
                body = json.dumps(asked).encode()
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP | {"accept-encoding"}}
            base = urllib.parse.urlsplit(counter.server).path.rstrip("/")
            link = counter.connect()
            try:
                link.request(method, base + self.path, body or None, headers)
                if not self.wait_for(link):
                    self.count(asked, None, 0)
                    return
                self.pass_on(link.getresponse(), asked)
            except (OSError, http.client.HTTPException) as error:
                try:
                    self.send_error(502, f"the model server does not answer: {type(error).__name__}")
                except OSError:
                    pass
            finally:
                link.close()

        def wait_for(self, link) -> bool:
            """Waits for the answer; false if the contender hung up meanwhile, which ends the server's work too."""
            while True:
                ready, _, _ = select.select([link.sock, self.connection], [], [], 3600)
                if link.sock in ready or not ready:
                    return True
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        return False
                except OSError:
                    return False
                return True

        def pass_on(self, answer, asked):
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            if not isinstance(asked, dict) or not asked.get("stream"):
                whole = answer.read()
                self.send_header("Content-Length", str(len(whole)))
                try:
                    self.end_headers()
                    self.wfile.write(whole)
                except OSError:
                    pass
                if asked is not None:
                    self.count_whole(answer.status, asked, whole)
                return
            usage, pieces, rest = None, 0, b""
            try:
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        if line.startswith(b"data:") and line[5:].strip() not in (b"", b"[DONE]"):
                            pieces += 1
                            if b'"usage"' in line:
                                usage = self.usage_of(line[5:]) or usage
            except OSError:
                pass
            if answer.status != 200:
                counter.add(requests=1, refused=1)
            else:
                self.count(asked, usage, pieces)

        def usage_of(self, data: bytes):
            try:
                return usage_in(json.loads(data))
            except ValueError:
                return None

        def count_whole(self, status: int, asked: dict, whole: bytes):
            if status != 200:
                counter.add(requests=1, refused=1)
            else:
                self.count(asked, self.usage_of(whole), 0)

        def count(self, asked, usage, pieces: int):
            if asked is None:
                return
            if usage is None:
                usage = (counter.prompt_tokens(asked), pieces)
                counter.add(counted_here=1)
            counter.add(requests=1, prompt_tokens=usage[0], completion_tokens=usage[1])

    return Passing
