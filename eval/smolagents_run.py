"""The tasks of a suite through smolagents, graded by the same checks as gimlet's own tries.

    python eval/smolagents_run.py SUITE --gimlet PATH --api-base http://localhost:8080 --model NAME --out DIR

Give it the folder that `gimlet eval SUITE --out DIR` wrote to, and one report shows both. It needs smolagents[openai] from
PyPI. The tools are what somebody would write for smolagents by hand: list, read, search, git, write, run. Nothing asks for an
approval, since smolagents has none; commands are confined to the throw-away copy by bubblewrap, for this machine's sake.
The same command goes on where it stopped; a try that was interrupted is made again in a fresh repository.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

from openai import APIConnectionError, APITimeoutError
from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, OpenAIModel, ToolCallingAgent, tool
from smolagents.memory import ActionStep
from smolagents.utils import AgentParsingError

MOST_CHARS = 3000


def cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[:MOST_CHARS] + f"\n… {len(text) - MOST_CHARS} characters more"


def make_tools(repo: pathlib.Path, calls: list) -> list:
    """Tools for one repository; every call is noted down."""

    def noted(name, work, command=None):
        call = {"tool": name, "ok": False, "commands": [command] if command else []}
        calls.append(call)
        result = work()
        call["ok"] = True
        return result

    def inside(path: str) -> pathlib.Path:
        full = (repo / path).resolve()
        if not full.is_relative_to(repo.resolve()):
            raise ValueError(f"{path} is outside of the repository")
        return full

    def run(argv: list, nothing: str = "") -> str:
        done = subprocess.run(argv, cwd=repo, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        said = f"{done.stdout}{done.stderr}"
        if nothing and not said:
            return nothing
        return cut(said) + ("" if done.returncode == 0 else f"\n(exit code {done.returncode})")

    @tool
    def list_files(path: str = ".") -> str:
        """Lists the files of the repository below a folder.

        Args:
            path: The folder, relative to the root of the repository.
        """
        files = (file.relative_to(repo) for file in sorted(inside(path).rglob("*")) if file.is_file())
        return noted("list_files", lambda: cut("\n".join(str(file) for file in files if file.parts[0] != ".git")))

    @tool
    def read_file(path: str) -> str:
        """Reads a text file of the repository, with numbered lines.

        Args:
            path: The file, relative to the root of the repository.
        """

        def work():
            lines = inside(path).read_text().splitlines()
            return cut("\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1)))

        return noted("read_file", work)

    @tool
    def search(pattern: str) -> str:
        """Searches all files of the repository for a regular expression. Gives file, line number and line.

        Args:
            pattern: The regular expression.
        """
        argv = ["grep", "-rnE", "--exclude-dir=.git", "-e", pattern, "."]
        return noted("search", lambda: run(argv, nothing="nothing was found"))

    @tool
    def git_log(count: int = 10) -> str:
        """Lists the last commits: hash, author, date and message, with the files they changed.

        Args:
            count: How many.
        """
        argv = ["git", "log", f"-{count}", "--name-status", "--format=%h %an %as %s"]
        return noted("git_log", lambda: run(argv))

    @tool
    def git_diff() -> str:
        """Shows what is changed in the working tree and not committed yet."""
        return noted("git_diff", lambda: run(["git", "diff", "HEAD"], nothing="nothing is changed"))

    @tool
    def write_file(path: str, content: str) -> str:
        """Writes a whole text file of the repository, new or not.

        Args:
            path: The file, relative to the root of the repository.
            content: What it is to hold.
        """

        def work():
            full = inside(path)
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(content)
            return f"{path} is written"

        return noted("write_file", work)

    @tool
    def run_command(command: str) -> str:
        """Runs a shell command in the root of the repository. Gives its output and its exit code.

        Args:
            command: The command.
        """
        jail = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(repo), str(repo)]
        argv = [*jail, "--unshare-all", "--die-with-parent", "--chdir", str(repo), "sh", "-c", command]
        return noted("run_command", lambda: run(argv), command)

    return [list_files, read_file, search, git_log, git_diff, write_file, run_command]


class Hurried(OpenAIModel):
    """A model that gives up at a point in time, as gimlet does: smolagents itself has no limit of time."""

    ends = None

    def generate(self, *args, **more):
        left = None if self.ends is None else self.ends - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("the time is up")
        return super().generate(*args, timeout=left, **more)


def last_words(steps: list) -> str:
    """What was said last, which is what gimlet too is judged by when its time is up."""
    said = [step.model_output for step in steps if isinstance(step.model_output, str)]
    return said[-1] if said else ""


def make_agent(options, action: str, max_steps: int, repo: pathlib.Path, calls: list):
    # "required", the default, makes this model write to its token limit through llama.cpp; "auto" lets smolagents find the
    # call in its text.
    more = {"tool_choice": options.tool_choice} if action == "tools" else {}
    model = Hurried(
        model_id=options.model,
        api_base=f"{options.api_base.rstrip('/')}/v1",
        api_key="none",
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        client_kwargs={"timeout": None, "max_retries": 0},
        **more,
    )
    kind = {"tools": ToolCallingAgent, "code": CodeAgent}[action]
    return kind(make_tools(repo, calls), model, max_steps=max_steps, verbosity_level=LogLevel.ERROR)


def warm_up(options, action: str):
    """Lets the server read the standing instructions, which it keeps, so that the time of no task goes into that."""
    agent = make_agent(options, action, 1, options.out, [])
    tools = {"tools_to_call_from": agent.tools_and_managed_agents} if action == "tools" else {}
    hello = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "New task:\nSay hello."}])
    agent.model.kwargs["max_tokens"] = 1
    agent.model.generate([*agent.write_memory_to_messages(), hello], **tools)


def is_unreachable(error: Exception) -> bool:
    """Whether the server is gone, which is nobody's failure; that it is slow is."""
    cause = error.__cause__ or error
    return isinstance(cause, APIConnectionError) and not isinstance(cause, APITimeoutError)


def attempt(options, action: str, order: dict, repo: pathlib.Path) -> dict:
    """Works on one task, and tells what happened in the words `gimlet eval --grade` reads."""
    calls: list = []
    agent = make_agent(options, action, order["max_steps"], repo, calls)
    begun = time.monotonic()
    agent.model.ends = begun + order["timeout"]
    told: dict = {"calls": calls}
    try:
        result = agent.run(order["task"], return_full_result=True)
        told["answer"] = "" if result.output is None else str(result.output)
        told["ended"] = "answered" if result.state == "success" else "limited"
    except Exception as error:
        if is_unreachable(error):
            sys.exit(f"the model server cannot be reached: {error}")
        late = time.monotonic() > agent.model.ends - 1
        told["answer"] = last_words([step for step in agent.memory.steps if isinstance(step, ActionStep)]) if late else ""
        told["ended"] = "limited" if late else "broken"
        if not late:
            told["error"] = {"error": type(error).__name__, "message": str(error)[:500]}
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    used = [step.token_usage for step in steps if step.token_usage]
    told |= {
        "steps": len(steps),
        "replies": len(steps),
        "parse_failures": sum(isinstance(step.error, AgentParsingError) for step in steps),
        "tokens": {"input": sum(u.input_tokens for u in used), "output": sum(u.output_tokens for u in used)},
        "seconds": time.monotonic() - begun,
    }
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--gimlet", default="gimlet")
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", help="the model's name in the report, if it is not --model")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--action", default="tools,code")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--split", default="all")
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--max-tokens", type=int, default=1024)
    parser.add_argument("--timeout", help="most seconds of one task, where the suite allows it more")
    parser.add_argument("--tool-choice", default="auto")
    options = parser.parse_args()
    if shutil.which("bwrap") is None:
        sys.exit("bubblewrap is needed, so that commands cannot leave the copy")
    chosen = ["--split", options.split, *(word for glob in options.task for word in ("--task", glob))]
    limits = ["--timeout", options.timeout] if options.timeout else []
    for repetition in range(1, options.repeat + 1):
        for action in options.action.split(","):
            folder = (options.out / "smolagents" / f"{action}-{repetition}").absolute()
            # Tasks are worked on elsewhere, in repositories made anew, and moved here as a whole when they are done: what an
            # interrupted try or an interrupted preparation left is never gone on with.
            work = folder.with_name(f"{folder.name}.work")
            if work.exists():
                shutil.rmtree(work)
            work.mkdir(parents=True)
            order = [options.gimlet, "eval", options.suite, *chosen, *limits, "--prepare", work]
            subprocess.run(order, check=True)
            folder.mkdir(parents=True, exist_ok=True)
            ahead = [place for place in sorted(work.iterdir()) if not (folder / place.name / "run.json").exists()]
            if ahead:
                warm_up(options, action)
            for place in ahead:
                order = json.loads((place / "task.json").read_text())
                told = attempt(options, action, order, place / "repo")
                name = options.name or options.model
                left = {"agent": "smolagents", "model": name, "action": action, "repetition": repetition, "transcript": told}
                (place / "run.json").write_text(json.dumps(left, indent=1))
                done = folder / place.name
                if done.exists():
                    shutil.rmtree(done)
                place.rename(done)
                print(f"{place.name} {action} {told['ended']} {told['steps']} steps {told['seconds']:.0f} s", file=sys.stderr)
            shutil.rmtree(work)
            subprocess.run(
                [options.gimlet, "eval", options.suite, *chosen, "--grade", folder, "--out", options.out], check=True
            )


if __name__ == "__main__":
    main()
