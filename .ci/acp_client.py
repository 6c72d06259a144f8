"""Talks to `gimlet acp` with the real Python SDK of the Agent Client Protocol, as an editor would.

usage: acp_client.py GIMLET
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import acp
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    AvailableCommandsUpdate,
    ClientCapabilities,
    FileEditToolCallContent,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
    WriteTextFileResponse,
)

GIMLET = str(Path(sys.argv[1]).resolve())
SCRIPT = """
order = "turns"
[[reply]]
thinking = "I look first."
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
expect = ["unsaved"]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "return a - b", new_text = "return a + b" } }]
[[reply]]
text = "It adds now."
[[reply]]
text = "Yes."
"""


class Editor(acp.Client):
    """An editor with one unsaved buffer, whose user agrees once."""

    def __init__(self, file: Path) -> None:
        self.file, self.buffer = file, "# unsaved\ndef add(a, b):\n    return a - b\n"
        self.updates: list[object] = []
        self.asked: list[object] = []

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append(tool_call)
        assert [o.kind for o in options] == ["allow_once", "allow_always", "reject_once"], options
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        if Path(path) != self.file:
            raise acp.RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffer)

    async def write_text_file(self, session_id, path, content, **kwargs):
        assert Path(path) == self.file, path
        self.buffer = content
        self.file.write_text(content)
        return WriteTextFileResponse()

    def on_connect(self, conn):
        pass

    def of(self, kind):
        return [update for update in self.updates if isinstance(update, kind)]

    def said(self):
        return "".join(chunk.content.text for chunk in self.of(AgentMessageChunk))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "project"
        root.mkdir()
        (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        home = Path(folder) / "home"
        home.mkdir()
        (home / "config.toml").write_text(
            '[gate]\nenabled = false\n[agents.editor]\ndescription = "edits"\ntools = ["read_file", "edit_file"]\n'
        )
        (home / "script.toml").write_text(SCRIPT)
        env = {"PATH": os.environ["PATH"], "GIMLET_HOME": str(home)}
        words = ["acp", "--model", f"scripted/{home}/script.toml", "--agent", "editor"]
        can = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))

        editor = Editor(root / "calc.py")
        async with acp.spawn_agent_process(editor, GIMLET, *words, env=env) as (agent, process):
            about = await agent.initialize(protocol_version=1, client_capabilities=can)
            assert about.agent_info.name == "gimlet" and about.agent_capabilities.load_session, about
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            assert session.modes.current_mode_id == "ask", session
            assert {o.id for o in session.config_options} == {"approve", "model", "action"}, session
            ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("fix it")])
            assert ended.stop_reason == "end_turn" and ended.usage is not None, ended
            assert editor.said() == "It adds now.", editor.updates
            assert editor.of(AgentThoughtChunk)[0].content.text == "I look first."
            assert editor.of(AvailableCommandsUpdate), editor.updates
            assert editor.of(SessionInfoUpdate)[0].title == "fix it"
            assert [call.kind for call in editor.of(ToolCallStart)] == ["read", "edit"], editor.updates
            (asked,) = editor.asked
            assert isinstance(asked.content[0], FileEditToolCallContent), asked
            assert "a + b" in asked.content[0].new_text and "# unsaved" in asked.content[0].old_text, asked
            assert any(isinstance(c, FileEditToolCallContent) for u in editor.of(ToolCallProgress) for c in u.content or [])
            assert editor.file.read_text() == editor.buffer == "# unsaved\ndef add(a, b):\n    return a + b\n"
            await agent.set_session_mode(session_id=session.session_id, mode_id="all")
            listed = await agent.list_sessions(cwd=str(root))
            assert [s.session_id for s in listed.sessions] == [session.session_id], listed

        editor = Editor(root / "calc.py")
        async with acp.spawn_agent_process(editor, GIMLET, *words, env=env) as (agent, process):
            await agent.initialize(protocol_version=1, client_capabilities=can)
            await agent.load_session(cwd=str(root), session_id=session.session_id, mcp_servers=[])
            assert editor.of(UserMessageChunk)[0].content.text == "fix it", editor.updates
            assert editor.said() == "It adds now.", editor.updates
            ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("really?")])
            assert ended.stop_reason == "end_turn" and editor.said().endswith("Yes."), editor.updates
            await agent.close_session(session_id=session.session_id)
    print("the Python SDK and gimlet understand each other")


asyncio.run(main())
