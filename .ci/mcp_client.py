"""The official Python client against `gimlet mcp serve`, in both revisions of the protocol.
python mcp_client.py GIMLET REPOSITORY MODEL: prints what it saw, one line of JSON for each revision."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters, types

gimlet, repository, model = sys.argv[1:]
WRONG = "    return a - b\n"
RIGHT = "    return a + b\n"


async def visit(mode, answer):
    with open(os.path.join(repository, "calc.py"), "w") as file:
        file.write("def add(a, b):\n" + WRONG)
    questions = []

    async def elicit(context, params):
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={"allow": answer})

    server = StdioServerParameters(
        command=gimlet,
        args=["mcp", "serve", "--root", repository, "--model", model],
        env={"PATH": os.environ["PATH"], "GIMLET_HOME": os.environ["GIMLET_HOME"], "NO_COLOR": "1"},
    )
    callback = elicit if answer is not None else None
    async with Client(server, mode=mode, elicitation_callback=callback) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        read = await client.call_tool("read_file", {"path": "calc.py"})
        change = {"intent": "Add", "file_path": "calc.py", "original_content": WRONG, "new_content": RIGHT}
        proposed = await client.call_tool("propose_patch", change)
        applied = await client.call_tool("apply_patch", {"patch_id": proposed.structured_content["patch_id"]})
        asked = await client.call_tool("ask", {"task": "what is wrong?"})
        print(json.dumps({
            "protocol": client.protocol_version,
            "tools": sorted(tools),
            "read_only": sorted(name for name, tool in tools.items() if tool.annotations.read_only_hint),
            "read": read.structured_content,
            "questions": questions,
            "applied": applied.structured_content,
            "refused": applied.is_error,
            "ask": asked.structured_content,
        }), flush=True)


async def main():
    for mode in ["legacy", "auto"]:
        for answer in [None, False, True]:
            await visit(mode, answer)


asyncio.run(main())
