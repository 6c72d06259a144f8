"""Serves the functions of a Python file as tools, over the Model Context Protocol on standard input and output.

`gimlet --tools FILE.py` runs this with the two files that it needs, and nothing else of the package has to be installed. What
the functions print goes to standard error.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from typing import Any

from ._tool import Tool, failure_of
from ._schema import to_json


def tools_of(path: str) -> dict[str, Tool[..., Any]]:
    """The tools of a file: what `@tool` marks, or else every public function with a docstring."""
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = list(vars(module).items())
    marked = {tool.name: tool for _, tool in found if isinstance(tool, Tool)}
    if marked:
        return marked
    functions = [value for word, value in found if inspect.isfunction(value) and value.__module__ == name and not word.startswith("_")]
    return {function.__name__: Tool(function) for function in functions if function.__doc__}


def described(tool: Tool[..., Any]) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input,
        "annotations": {"readOnlyHint": tool.reads_only},
    }


def called(tool: Tool[..., Any] | None, args: dict[str, Any]) -> dict[str, Any]:
    try:
        if tool is None:
            raise LookupError("there is no such tool")
        value = tool.invoke(args)
        if inspect.isawaitable(value):
            import asyncio

            async def wait(awaited: Any = value) -> Any:
                return await awaited

            value = asyncio.run(wait())
        value = to_json(value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}]}
    except Exception as error:
        failure = failure_of(error)
        word = "" if failure["error"] == "TOOL_EXCEPTION" else f"{failure['error']}: "
        return {"content": [{"type": "text", "text": f"{word}{failure['message']}"}], "isError": True}


def serve(path: str) -> None:
    """Serves a file until standard input is closed."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    tools = tools_of(path)
    if not tools:
        raise SystemExit(f"{path} has no tools: give its functions docstrings, or mark them with @tool")
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message or method is None:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            about = {"name": os.path.basename(path), "version": "1"}
            answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        elif method == "tools/list":
            answer["result"] = {"tools": [described(tool) for tool in tools.values()]}
        elif method == "tools/call":
            answer["result"] = called(tools.get(params["name"]), params.get("arguments") or {})
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": f"there is no method {method}"}
        protocol.write(json.dumps(answer) + "\n")
        protocol.flush()
