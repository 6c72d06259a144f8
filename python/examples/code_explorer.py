"""A code explorer: a model looks around in one folder with functions of this file, and cannot change anything.

usage: python code_explorer.py QUESTION [MODEL]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gimlet import Agent, ToolError, tool

ROOT = Path.cwd().resolve()


def inside(path: str) -> Path:
    """A path of the folder; one that leads out of it is an error that the model reads."""
    found = (ROOT / path).resolve()
    if not found.is_relative_to(ROOT):
        raise ToolError("PATH_OUTSIDE", f"{path} is outside of the folder", path=path)
    if not found.exists():
        raise ToolError("FILE_NOT_FOUND", f"there is no {path}", path=path)
    return found


@tool(reads_only=True)
def list_directory(path: str = ".", pattern: str = "*") -> list[str]:
    """List the files of a folder.

    Args:
        path: the folder
        pattern: a glob, `**` for all folders below
    """
    found = sorted(inside(path).glob(pattern))
    return [str(item.relative_to(ROOT)) for item in found if not any(part.startswith(".") for part in item.parts[len(ROOT.parts) :])]


@tool(reads_only=True)
def read_lines(path: str, start: int = 1, end: int = 200) -> str:
    """Read lines of a file.

    Args:
        path: the file
        start: the first line, from 1
        end: the last line
    """
    return "\n".join(inside(path).read_text(errors="replace").splitlines()[start - 1 : end])


@tool(reads_only=True, timeout=30)
def git_history(count: int = 10) -> str:
    """Show the last commits, one a line."""
    done = subprocess.run(["git", "log", f"-{count}", "--oneline"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise ToolError("GIT_FAILED", done.stderr.strip())
    return done.stdout


def explorer(model: str | None = None) -> Agent:
    return Agent(model, action="code", tools=[list_directory, read_lines, git_history], max_steps=20,
                 instructions="You explore one folder and change nothing. Name the files your answer rests on.")


if __name__ == "__main__":
    print(explorer(*sys.argv[2:3]).run(sys.argv[1]))
