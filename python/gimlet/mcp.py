"""Servers of the Model Context Protocol as tools of an agent."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Mapping, Sequence

__all__ = ["Server", "http", "stdio"]


class Server:
    """An MCP server. Its tools ask before they are called, as all of which nobody knows what they do."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        #: The first half of its tools' names: `name__tool`.
        self.name = name
        self.table = table

    @property
    def prefix(self) -> str:
        """How the names of its tools begin."""
        return f"{_identifier(self.name)}__"

    def __repr__(self) -> str:
        return f"<MCP server {self.name}>"


def stdio(
    command: str,
    *args: str,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    required: Sequence[str] = (),
    allow: Sequence[str] | None = None,
    deny: Sequence[str] = (),
    trusted: bool = False,
    timeout: float | None = None,
) -> Server:
    """A server that is started as a process and ends with the run.

    Args:
        command: the program; `python` is the Python that runs this code
        args: its arguments
        name: the first half of its tools' names; made of the arguments otherwise
        env: variables it gets beside the usual ones
        cwd: the folder it runs in
        required: tools it must offer; without them no run starts
        allow: the tools that are offered, with `*` for any text; all otherwise
        deny: tools that are not offered
        trusted: believe the server when it says that a tool only reads
        timeout: seconds to wait for an answer or a sign of progress
    """
    table: dict[str, Any] = {
        "command": sys.executable if command == "python" else command,
        "args": [str(arg) for arg in args],
        "env": dict(env or {}),
    }
    if cwd is not None:
        table["cwd"] = os.path.abspath(cwd)
    return Server(name or _stdio_name(command, args), _common(table, required, allow, deny, trusted, timeout))


def http(
    url: str,
    *,
    name: str | None = None,
    headers: Mapping[str, str] | None = None,
    required: Sequence[str] = (),
    allow: Sequence[str] | None = None,
    deny: Sequence[str] = (),
    trusted: bool = False,
    timeout: float | None = None,
) -> Server:
    """A server that somebody runs at an address. The arguments are those of `stdio`."""
    if name is None:
        from urllib.parse import urlsplit

        name = urlsplit(url).hostname or "server"
    table: dict[str, Any] = {"type": "http", "url": url, "headers": dict(headers or {})}
    return Server(name, _common(table, required, allow, deny, trusted, timeout))


def _common(
    table: dict[str, Any],
    required: Sequence[str],
    allow: Sequence[str] | None,
    deny: Sequence[str],
    trusted: bool,
    timeout: float | None,
) -> dict[str, Any]:
    table.update(required=list(required), deny=list(deny), trusted=trusted)
    if allow is not None:
        table["allow"] = list(allow)
    if timeout is not None:
        table["call_timeout"] = timeout
    return table


def _stdio_name(command: str, args: Sequence[str]) -> str:
    """Of `python -m notes.server` it is `notes`, of `npx server.js` it is `server`."""
    words = [str(arg) for arg in args]
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1].split(".")[0]
    files = [word for word in words if not word.startswith("-")]
    path = files[0] if files else command
    return os.path.splitext(os.path.basename(path))[0] or "server"


def _identifier(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9]", "_", name)
    return f"_{safe}" if not safe or safe[0].isdigit() else safe
