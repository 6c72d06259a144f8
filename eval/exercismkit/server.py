"""The model server: one that runs already, or llama.cpp's, which is started here and started again if it dies."""

import json
import os
import pathlib
import select
import subprocess
import sys
import time
import urllib.error
import urllib.request

from .processes import die_with_parent

ROOT = pathlib.Path(__file__).resolve().parents[2]
XLLAMACPP, SMOLAGENTS, OPENAI, AIDER = "2026.10.11549", "1.26.0", "3.49.0", "0.86.2"
WEIGHTS = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


class NoServer(Exception):
    """There is no model server to work with."""


def make_venv(folder: pathlib.Path, packages: list[str]) -> pathlib.Path:
    """A Python with these packages. An installation that was interrupted is made again."""
    python = folder / "bin" / "python"
    whole = folder / "complete"
    wanted = "\n".join(packages) + "\n"
    if not (whole.is_file() and whole.read_text() == wanted and python.exists()):
        print(f"installing {', '.join(packages)} into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
        whole.write_text(wanted)
    return python


def get(address: str, path: str, seconds: float = 10) -> dict:
    with urllib.request.urlopen(f"{address}{path}", timeout=seconds) as answer:
        return json.load(answer)


class Given:
    """A server that somebody else runs."""

    def __init__(self, address: str):
        self.address = address.rstrip("/").removesuffix("/v1")

    def ensure(self) -> str:
        if not is_up(self.address):
            raise NoServer(f"the model server at {self.address} does not answer")
        return self.address

    def stop(self) -> None:
        pass


class Own:
    """A server of ours. It serves until this process closes its standard input, or dies."""

    def __init__(self, folder: pathlib.Path, python: pathlib.Path, weights: pathlib.Path, threads: int, context: int):
        self.order = [python, ROOT / ".ci" / "llama_server.py", weights, str(threads), str(context)]
        self.log = folder / "server.log"
        self.process = None
        self.address = ""

    def ensure(self) -> str:
        if self.process is None or self.process.poll() is not None or not is_up(self.address):
            self.stop()
            self.begin()
        return self.address

    def begin(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.order, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            preexec_fn=die_with_parent)
        ready, _, _ = select.select([self.process.stdout], [], [], 300)
        line = self.process.stdout.readline().decode().strip() if ready else ""
        if not line.startswith("http"):
            self.stop()
            raise NoServer(f"the model server did not start; {self.log} says why")
        self.address = line.rstrip("/")
        until = time.monotonic() + 300
        while not is_up(self.address):
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise NoServer(f"the model server did not become ready; {self.log} says why")
            time.sleep(0.5)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process = None


def is_up(address: str) -> bool:
    for attempt in range(3):
        try:
            get(address, "/v1/models", 60)
            return True
        except (OSError, ValueError, urllib.error.URLError):
            time.sleep(attempt)
    return False


def model_of(address: str) -> str:
    """The name that the server gives to its model."""
    listed = get(address, "/v1/models").get("data") or []
    if not listed:
        raise NoServer(f"the model server at {address} names no model")
    return os.path.basename(listed[0]["id"])


def fetch_weights(folder: pathlib.Path, python: pathlib.Path) -> pathlib.Path:
    """The weights, which are checked against the official hash where they are put together."""
    whole = folder / WEIGHTS
    if not whole.is_file():
        # Elsewhere first: what an interrupted download leaves is never taken for the whole.
        parts = folder / "weights.part"
        parts.mkdir(exist_ok=True)
        subprocess.run([python, ROOT / ".ci" / "qwen.py", parts], check=True)
        (parts / WEIGHTS).rename(whole)
    return whole
