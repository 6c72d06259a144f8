"""Who is tried, and the command that gives it a task. Everyone gets the same words, the same server and the same time."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess

from .exercises import Exercise
from .processes import confined
from .server import AIDER, OPENAI, SMOLAGENTS, XLLAMACPP, make_venv

EVAL = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Try:
    """One exercise, laid out for one contender."""

    exercise: Exercise
    repo: pathlib.Path
    home: pathlib.Path
    address: str
    model: str
    seconds: int

    @property
    def check(self) -> str:
        return " ".join(self.exercise.command)

    def env(self, **more: str) -> dict:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE") if name in os.environ}
        return {**kept, "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1", **more}


@dataclasses.dataclass(frozen=True)
class Tools:
    """What the contenders are run with; `folder` gets what has to be installed."""

    gimlet: pathlib.Path
    folder: pathlib.Path

    def python(self) -> pathlib.Path:
        return make_venv(self.folder / "python", [f"xllamacpp=={XLLAMACPP}", f"smolagents[openai]=={SMOLAGENTS}", f"openai=={OPENAI}"])

    def aider(self) -> pathlib.Path:
        return make_venv(self.folder / "aider", [f"aider-chat=={AIDER}"])


class Gimlet:
    """Gimlet, with or without a format of its own choice. Its own jail confines what it runs."""

    def __init__(self, action: str | None, more: tuple[str, ...] = ()):
        self.action, self.more = action, more

    def version(self, tools: Tools) -> str:
        told = subprocess.run([tools.gimlet, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        with tools.gimlet.open("rb") as binary:
            digest = hashlib.file_digest(binary, "sha256").hexdigest()
        return f"{told} (sha256 {digest[:12]})"

    def order(self, tools: Tools, given: Try) -> tuple[list, dict]:
        argv = [tools.gimlet, "run", "--model", f"llamacpp/{given.model}", "--api-base", given.address, "--approve", "all",
                "--no-trace", "--root", given.repo, "--timeout", given.seconds, *self.more]
        if self.action:
            argv += ["--action", self.action]
        return [*argv, given.exercise.task], given.env(GIMLET_HOME=str(given.home / "gimlet"), PHOENIX_ENABLED="false")


class Aider:
    """aider with the format and the test loop of its own benchmark; `tests` also shows it the tests, read-only."""

    def __init__(self, tests: bool):
        self.tests = tests

    def version(self, tools: Tools) -> str:
        tools.aider()
        return f"aider {AIDER}"

    def order(self, tools: Tools, given: Try) -> tuple[list, dict]:
        argv = [tools.aider().with_name("aider"), "--model", f"openai/{given.model}", "--edit-format", "whole", "--yes-always",
                "--no-stream", "--map-tokens", "0", "--test-cmd", given.check, "--auto-test",
                # The rest changes nothing of its work: no look at the network, no questions, no commits of its own.
                "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes",
                "--no-detect-urls", "--no-suggest-shell-commands", "--no-gitignore", "--no-auto-commits",
                "--no-dirty-commits", "--no-pretty", "--no-fancy-input", "--no-browser", "--disable-playwright"]
        if self.tests:
            argv += [word for path in given.exercise.test for word in ("--read", path)]
        argv += ["--message", given.exercise.task, *given.exercise.solution]
        env = given.env(OPENAI_API_BASE=f"{given.address}/v1", OPENAI_API_KEY="none", LITELLM_LOCAL_MODEL_COST_MAP="True")
        return confined(argv, [given.repo, given.home], network=True, readable=tools.folder / "aider"), env


class Smolagents:
    """An agent of smolagents with the tools somebody would write for it; they run commands in a jail."""

    def __init__(self, kind: str):
        self.kind = kind

    def version(self, tools: Tools) -> str:
        tools.python()
        return f"smolagents {SMOLAGENTS}, {self.kind} agent"

    def order(self, tools: Tools, given: Try) -> tuple[list, dict]:
        argv = [tools.python(), EVAL / "exercismkit" / "smolagents_driver.py", self.kind, given.address, given.model,
                given.seconds, given.repo, given.exercise.task]
        return argv, given.env()


CONTENDERS = {
    "gimlet-guided": Gimlet("guided"),
    "gimlet": Gimlet(None),
    "aider": Aider(tests=False),
    "smolagents": Smolagents("code"),
    # Only where they are named with --contender.
    "gimlet-tools": Gimlet("tools"),
    "gimlet-code": Gimlet("code"),
    "aider-tests": Aider(tests=True),
    "smolagents-tools": Smolagents("tools"),
}
USUAL = ("gimlet-guided", "gimlet", "aider", "smolagents")
