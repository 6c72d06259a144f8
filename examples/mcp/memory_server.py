"""A small memory over MCP. `python memory_server.py` speaks over standard input and output; with `http` or `sse` it
listens on a port of the system's choice and prints its address. Needs `pip install fastmcp`."""

import socket
import sys

from fastmcp import FastMCP

mcp = FastMCP("memory")
memories: list[dict] = []


@mcp.tool(annotations={"readOnlyHint": True})
def semantic_recall(query: str, limit: int = 5) -> list[dict]:
    """Find memories that have a word in common with the query."""
    words = set(query.lower().split())
    found = [memory for memory in memories if words & set(memory["text"].lower().split())]
    return found[:limit]


@mcp.tool
def create_memory(text: str, tags: list[str] | None = None) -> dict:
    """Keep a memory."""
    memory = {"id": len(memories) + 1, "text": text, "tags": tags or []}
    memories.append(memory)
    return memory


@mcp.tool(annotations={"readOnlyHint": True})
def get_consciousness_state() -> dict:
    """How much is remembered."""
    return {"memories": len(memories), "tags": sorted({tag for memory in memories for tag in memory["tags"]})}


if __name__ == "__main__":
    transport = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if transport == "stdio":
        mcp.run(show_banner=False)
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        print(f"http://127.0.0.1:{port}/{'mcp' if transport == 'http' else 'sse'}", flush=True)
        mcp.run(transport=transport, host="127.0.0.1", port=port, show_banner=False)
