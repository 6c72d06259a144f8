"""Who is measured: how each is started, what the scripted model says to it, and what it did, in words.

All get the same task and read the same files one by one, each by the means it has for that.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .measure import Command
from .server import CONTEXT

ANSWER = "forty-two"
TASK = "Read the parts one after the other, then tell the number they add up to."


@dataclass(frozen=True)
class Places:
    """Where things are."""

    gimlet: Path
    server: Path
    peers: Path
    bench: Path
    work: Path
    """Scratch: the project the agents work in, and a home for each of them."""

    @property
    def project(self) -> Path:
        return self.work / "project"

    @property
    def python(self) -> Path:
        return self.peers / "python/bin/python"

    def without_paths(self, text: str) -> str:
        """A text for the results, which are public."""
        for folder in (self.work, self.peers, self.bench.parent):
            text = text.replace(str(folder), "…")
        return text

    def environment(self, name: str, **more: str) -> dict[str, str]:
        """A home of its own and nothing of the person's settings."""
        home = self.work / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        path = os.environ.get("PATH", "/usr/bin:/bin")
        return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", **more}


def part(number: int) -> str:
    return f"src/part_{number:02}.py"


def make_project(folder: Path, parts: int) -> None:
    (folder / "src").mkdir(parents=True)
    for number in range(parts):
        lines = [f"def value_{number}_{line}(x):\n    return x + {line}\n" for line in range(12)]
        (folder / part(number)).write_text(f'"""Part {number}."""\n\n' + "\n\n".join(lines))
    (folder / "README.md").write_text("# Parts\n\nThey add up.\n")


class Agent:
    """One contestant of the rows with a task."""

    key: str
    label: str
    how: str
    """What it does in a step."""
    alike: str | None = None
    """The way of gimlet's that is like its own, where the plain one is not."""
    starts = True
    """Whether it starts in a way of its own; gimlet's actions start alike, and so do smolagents' agents."""

    def __init__(self, places: Places):
        self.places = places

    def missing(self) -> str | None:
        """Why it cannot take part."""
        return None

    def version(self) -> str:
        raise NotImplementedError

    def start_up(self) -> Command:
        """Starts, tells its version, ends."""
        raise NotImplementedError

    def run(self, url: str, steps: int) -> Command:
        raise NotImplementedError

    def step(self, number: int) -> dict:
        """The scripted reply that makes it read a part."""
        raise NotImplementedError

    def end(self) -> dict:
        return {"text": ANSWER}

    def replies(self, steps: int) -> list[dict]:
        return [self.step(number) for number in range(steps - 1)] + [self.end()]


def _call(name: str, **args: str) -> dict:
    return {"calls": [{"name": name, "args": args}]}


class Gimlet(Agent):
    key, label = "gimlet", "gimlet"
    how = "calls `read_file`"
    action = "tools"

    def version(self) -> str:
        return machine.version([str(self.places.gimlet), "--version"])

    def _environment(self) -> dict[str, str]:
        home = self.places.work / "homes" / self.key / "gimlet"
        if not home.exists():
            home.mkdir(parents=True)
            # Nobody else doubts that the window is wide enough; of a server it does not know, gimlet would.
            model = f'[models.bench]\nid = "hosted_vllm/scripted"\ncontext = {CONTEXT}\n'
            (home / "config.toml").write_text(model)
        return self.places.environment(self.key, GIMLET_HOME=str(home))

    def start_up(self) -> Command:
        return Command([str(self.places.gimlet), "--version"], self._environment(), self.places.project)

    def python(self, program: Path) -> Command:
        """Runs a program in the sandbox, without an agent."""
        argv = [str(self.places.gimlet), "python", "--timeout", "300", str(program)]
        return Command(argv, self._environment(), self.places.project)

    def tool(self, name: str, root: Path, **args: str) -> Command:
        """Calls a tool through the guard, without an agent."""
        argv = [str(self.places.gimlet), "tools", "call", name, json.dumps(args)]
        return Command(argv, self._environment(), root)

    def run(self, url: str, steps: int) -> Command:
        argv = [str(self.places.gimlet), "--model", "bench", "--api-base", f"{url}/v1"]
        argv += ["--action", self.action, "--max-steps", str(steps + 5), "--quiet", TASK]
        return Command(argv, self._environment(), self.places.project)

    def step(self, number: int) -> dict:
        return _call("read_file", path=part(number))


class GimletAgain(Gimlet):
    key, label = "gimlet-again", "gimlet again"
    how = "the same as gimlet; what differs is noise"


class GimletShell(Gimlet):
    key, label = "gimlet-shell", "gimlet, by shell"
    how = "calls `run_cmd` with `cat`, judged by the policy and run in the jail"
    starts = False

    def step(self, number: int) -> dict:
        return _call("run_cmd", cmd=f"cat {part(number)}")


class GimletCode(Gimlet):
    key, label = "gimlet-code", "gimlet, by code"
    how = "runs a cell of Python in the sandbox that calls `read_file`"
    action = "code"
    starts = False

    def step(self, number: int) -> dict:
        return {"text": f'```python\nprint(read_file("{part(number)}"))\n```'}

    def end(self) -> dict:
        return {"text": f'```python\nfinal_answer("{ANSWER}")\n```'}


class SmolagentsTools(Agent):
    key, label = "smolagents-tools", "smolagents ToolCallingAgent"
    how = "calls a tool `read_file` written in Python, in its own process"
    kind = "tools"

    def missing(self) -> str | None:
        return None if self.places.python.exists() else "not installed; bench/peers installs it"

    def version(self) -> str:
        code = "from importlib.metadata import version; print(version('smolagents'))"
        return machine.version([str(self.places.python), "-c", code])

    def start_up(self) -> Command:
        code = "import smolagents; print(smolagents.__version__)"
        environment = self.places.environment(self.key)
        return Command([str(self.places.python), "-c", code], environment, self.places.project)

    def run(self, url: str, steps: int, runs: int = 1) -> Command:
        driver = str(self.places.bench / "smolagents_driver.py")
        argv = [str(self.places.python), driver, self.kind, f"{url}/v1", str(steps + 5), str(runs), TASK]
        return Command(argv, self.places.environment(self.key), self.places.project)

    def step(self, number: int) -> dict:
        return _call("read_file", path=part(number))

    def end(self) -> dict:
        return _call("final_answer", answer=ANSWER)


class SmolagentsCode(SmolagentsTools):
    key, label = "smolagents-code", "smolagents CodeAgent"
    how = "runs Python that calls the same tool in its interpreter, in its own process"
    kind = "code"
    alike = "gimlet-code"
    starts = False

    def step(self, number: int) -> dict:
        return {"text": f'Thought: read it.\n<code>\nprint(read_file("{part(number)}"))\n</code>'}

    def end(self) -> dict:
        return {"text": f'Thought: done.\n<code>\nfinal_answer("{ANSWER}")\n</code>'}


class Packaged(Agent):
    """A native program inside a package of npm, started without the Node program around it, which only costs time."""

    package: str

    def binary(self) -> Path:
        return self.places.peers / "node_modules" / self.package

    def missing(self) -> str | None:
        if self.binary().exists():
            return None
        return "not installed; bench/peers installs it (64-bit Linux on Intel or AMD)"

    def version(self) -> str:
        return machine.version([str(self.binary()), "--version"])

    def start_up(self) -> Command:
        argv = [str(self.binary()), "--version"]
        return Command(argv, self.places.environment(self.key), self.places.project)


class Goose(Packaged):
    key, label = "goose", "goose"
    how = "calls its developer extension's `shell` with `cat`"
    alike = "gimlet-shell"
    package = "@aaif/goose-binary-linux-x64/bin/goose"

    def run(self, url: str, steps: int) -> Command:
        environment = self.places.environment(
            self.key,
            OPENAI_HOST=url,
            OPENAI_API_KEY="none",
            GOOSE_PROVIDER="openai",
            GOOSE_MODEL="scripted",
            GOOSE_MODE="auto",
            GOOSE_DISABLE_KEYRING="1",
            GOOSE_DISABLE_SESSION_NAMING="true",
            GOOSE_TELEMETRY_ENABLED="false",
        )
        argv = [str(self.binary()), "run", "--quiet", "--no-session", "--no-profile", "--with-builtin", "developer"]
        argv += ["--max-turns", str(steps + 5), "--text", TASK]
        return Command(argv, environment, self.places.project)

    def step(self, number: int) -> dict:
        return _call("shell", command=f"cat {part(number)}")


class Codex(Packaged):
    key, label = "codex", "codex"
    how = "calls `exec_command` with `cat`, its sandbox and approvals off"
    alike = "gimlet-shell"
    package = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"

    def run(self, url: str, steps: int) -> Command:
        provider = {"name": '"bench"', "base_url": json.dumps(f"{url}/v1"), "wire_api": '"responses"'}
        table = ", ".join(f"{key} = {value}" for key, value in provider.items())
        argv = [str(self.binary()), "exec", "--skip-git-repo-check", "--ephemeral"]
        argv += ["--dangerously-bypass-approvals-and-sandbox", "--model", "scripted"]
        argv += ["-c", "model_provider=bench", "-c", f"model_providers.bench={{ {table} }}", TASK]
        return Command(argv, self.places.environment(self.key), self.places.project)

    def step(self, number: int) -> dict:
        return _call("exec_command", cmd=f"cat {part(number)}")


OWN = [Gimlet, GimletAgain, GimletShell, GimletCode]
OTHERS = [SmolagentsTools, SmolagentsCode, Goose, Codex]
