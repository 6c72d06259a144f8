"""The scripted model server: one process of `gimlet-model-server`, and what it wrote down."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

CONTEXT = 1_000_000
"""Window it says its models have: wide enough that nobody has to shorten the sixty steps."""


@dataclass(frozen=True)
class Request:
    at: float
    size: int
    prompt: str
    """Tools, system prompt and messages, as text: what a model server has to read, without settings and metadata."""


class Server:
    """Plays replies to every conversation by the number of replies already in it. Ends with its block."""

    def __init__(self, binary: Path, replies: list[dict]):
        self._folder = tempfile.TemporaryDirectory(prefix="gimlet-bench-server-")
        script = Path(self._folder.name) / "script.json"
        script.write_text(json.dumps({"order": "turns", "reply": replies}))
        self._log = Path(self._folder.name) / "requests.jsonl"
        # Lenient: other agents may keep other rules than gimlet's; what they send is answered all the same.
        argv = [binary, script, "--lenient", "--log", self._log, "--context", str(CONTEXT)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.url = (self._process.stdout.readline() if self._process.stdout else "").strip()
        if not self.url:
            raise RuntimeError(f"{binary} did not start")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()

    def requests(self) -> list[Request]:
        """The model calls so far. Read after the run: the log is long."""
        with self._log.open() as file:
            return [_read(json.loads(line)) for line in file]


def _read(line: dict) -> Request:
    body = line["body"] if isinstance(line["body"], dict) else {}
    parts = [body.get(key) for key in ("tools", "instructions", "system", "messages", "input")]
    prompt = "".join(json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts if part)
    return Request(line["at_us"] / 1e6, line["bytes"], prompt)


def repeated_share(before: Request, now: Request) -> float:
    """How much of a prompt repeats, from its beginning, the prompt before it byte for byte: what a prefix cache can keep."""
    return len(_common(before, now)) / len(now.prompt)


def kept_share(before: Request, now: Request) -> float:
    """How much of a prompt stands unchanged at the beginning of the next one. The bracket that closes a list is not of it."""
    return len(_common(before, now)) / len(before.prompt.rstrip("]"))


def _common(before: Request, now: Request) -> str:
    """The longest common beginning of two prompts."""
    one, other = before.prompt.rstrip("]"), now.prompt
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return one[:low]
