"""A small MCP server over standard input and output: it keeps memories in its own process. Part of five_layers.py."""

from __future__ import annotations

import json
import sys
from typing import Any

MEMORIES = ["The build machine restarts on Monday morning.", "Its disk is wiped on restart."]
TOOLS = {
    "semantic_recall": ("Find memories that share a word with the query.", "query"),
    "create_memory": ("Keep a memory.", "text"),
    "get_state": ("Tell how many memories there are.", None),
}


def call(name: str, args: dict[str, Any]) -> str:
    if name == "create_memory":
        MEMORIES.append(args["text"])
        return f"kept as {len(MEMORIES)}"
    if name == "get_state":
        return f"{len(MEMORIES)} memories"
    words = set(args["query"].lower().split())
    return "\n".join(text for text in MEMORIES if words & set(text.lower().rstrip(".").split())) or "nothing"


def schema(argument: str | None) -> dict[str, Any]:
    properties = {argument: {"type": "string"}} if argument else {}
    return {"type": "object", "properties": properties, "required": list(properties)}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"name": "memory", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": n, "description": d, "inputSchema": schema(a)} for n, (d, a) in TOOLS.items()]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(params["name"], params.get("arguments", {}))}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
