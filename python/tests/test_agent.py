"""Agents through the real program, on a scripted model."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path
from typing import Any, Callable

import pytest

import gimlet
from gimlet import Agent, Ask, Check, ToolError, mcp, tool

Script = Callable[[str], str]


@tool(reads_only=True)
def recall(query: str, limit: int = 5) -> list[dict[str, Any]]:
    """Find memories.

    Args:
        query: what to look for
    """
    return [{"text": "rain", "query": query, "limit": limit}]


RECALL = """
[[reply]]
calls = [{ name = "recall", args = { query = "monday" } }]
[[reply]]
expect = ["rain", "monday"]
text = '["rain"]'
usage = { input = 10, output = 3 }
"""


def test_one_line(script: Script) -> None:
    model = script('[[reply]]\ncalls = [{ name = "read_file", args = { path = "calc.py" } }]\n[[reply]]\nexpect = ["a - b"]\ntext = "It subtracts."')
    result = gimlet.run("why does the test fail?", model)
    assert str(result) == "It subtracts." == result.output
    assert result.state == "answered" and result.steps == 2


def test_a_tool_of_this_program_and_a_typed_answer(script: Script) -> None:
    with Agent(script(RECALL), tools=[recall]) as agent:
        stream = agent.stream("why on mondays?")
        types = [(event.path, event.type) for event in stream]
        assert types[0] == ("", "run.started") and types[-1] == ("", "run.finished")
        assert ("", "tool.started") in types
        result = agent.run("And on Fridays?", output=list[str])
    assert result.output == ["rain"]
    assert (result.usage.input, result.usage.output, result.usage.total) == (10, 3, 13)
    finished = [event for event in result.events if event.type == "tool.finished"]
    assert finished[0].result[0]["limit"] == 5 and finished[0]["tool"] == "recall"
    assert result.run != stream.result.run, "each run is a run of its own"


def test_a_typed_answer_of_code_keeps_its_type(script: Script) -> None:
    @dataclasses.dataclass
    class Report:
        lines: int
        names: list[str]

    answer = "final_answer({'lines': len(recall(query='x')) + 300, 'names': ['a']})"
    model = script(f'[[reply]]\ntext = """```python\n{answer}\n```"""')
    result = Agent(model, action="code", tools=[recall]).run("count", output=Report)
    assert result.output == Report(301, ["a"])
    number = script('[[reply]]\ntext = """```python\nfinal_answer(301)\n```"""')
    assert Agent(number, action="code", tools=[recall]).run("count").output == 301


def test_an_answer_without_its_form_is_an_error(script: Script) -> None:
    model = script('[[reply]]\ntext = "many"\n' * 12)
    with pytest.raises(gimlet.RunFailed, match="form that is asked for") as raised:
        Agent(model, tools=[recall], max_steps=3).run("count", output=int)
    assert raised.value.run and raised.value.hint


def test_tools_run_on_the_callers_thread(script: Script) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("create table notes (text)")
    db.execute("insert into notes values ('rain')")

    @tool(reads_only=True, name="recall")
    def ask_database(query: str) -> list[str]:
        """Find memories."""
        return [text for (text,) in db.execute("select text from notes")] + [query]

    result = Agent(script(RECALL), tools=[ask_database]).run("why?")
    assert [event.ok for event in result.events if event.type == "tool.finished"] == [True]


def test_a_tool_that_fails_is_an_observation(script: Script) -> None:
    @tool(reads_only=True)
    def broken(word: str) -> str:
        """Breaks."""
        if word == "known":
            raise ToolError("MEMORY_FULL", "there is no room", size=3)
        raise ValueError(f"no {word}")

    model = script("""
[[reply]]
calls = [{ name = "broken", args = { word = "known" } }, { name = "broken", args = { word = "luck" } }, { name = "broken", args = { wrod = 1 } }]
[[reply]]
expect = ["did you mean `word`"]
text = "It is broken."
""")
    result = Agent(model, tools=[broken]).run("try")
    results = [event.result for event in result.events if event.type == "tool.finished"]
    assert results[0]["error"] == "MEMORY_FULL" and results[0]["context"] == {"size": 3}
    assert results[1]["error"] == "TOOL_EXCEPTION"
    assert results[2]["error"] == "VALIDATION_FAILED", "the guard checks the schema before the function is called"


CREATE = """
[[reply]]
calls = [{ name = "create", args = { text = "a" } }]
[[reply]]
calls = [{ name = "create", args = { text = "b" } }]
[[reply]]
expect = ["not today"]
text = "Done."
"""


def creator(made: list[str]) -> Any:
    @tool
    def create(text: str) -> str:
        """Makes a memory."""
        made.append(text)
        return "made"

    return create


def test_what_may_change_something_is_asked(script: Script) -> None:
    made: list[str] = []
    asked: list[Ask] = []

    def approve(ask: Ask) -> bool | str:
        asked.append(ask)
        return True if ask.args["text"] == "a" else "not today"

    Agent(script(CREATE), tools=[creator(made)], approve=approve).run("make two")
    assert made == ["a"]
    assert [ask.tool for ask in asked] == ["create", "create"] and asked[0].reason and asked[0].effects


def test_a_question_that_nobody_answers_suspends_and_is_resumed(script: Script) -> None:
    made: list[str] = []
    model = script(CREATE)
    with pytest.raises(gimlet.Suspended) as raised:
        Agent(model, tools=[creator(made)]).run("make two")
    error = raised.value
    assert error.error == "APPROVAL_REQUIRED" and error.ask is not None and error.ask.tool == "create"
    assert made == [] and error.run and error.events[-1].type == "run.suspended"
    with pytest.raises(gimlet.Suspended):
        Agent(model, tools=[creator(made)]).resume(error.run)
    allowed = Agent(model, tools=[creator(made)], approve=lambda ask: ask.args["text"] == "a" or "not today")
    result = allowed.resume(error.run)
    assert made == ["a"] and str(result) == "Done." and result.run == error.run


def test_resume_in_another_folder_and_process(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = script(RECALL + '[[reply]]\nexpect = ["shorter"]\ntext = "Rain."')
    first = Agent(model, tools=[recall]).run("why?")
    monkeypatch.chdir(tmp_path)
    again = Agent(model, tools=[recall]).resume(first.run, "shorter, please")
    assert again.run == first.run and str(again) == "Rain."
    with pytest.raises(gimlet.UsageError, match="nothing left"):
        Agent(model, tools=[recall]).resume(first.run)


def test_checks_refuse_an_answer(script: Script) -> None:
    model = script('[[reply]]\ntext = "[]"\n[[reply]]\nexpect = ["say why"]\ntext = \'["rain"]\'')
    seen: list[tuple[Any, list[str]]] = []

    def is_full(answer: list[str], run: Check) -> None:
        seen.append((answer, run.calls))
        assert answer, "say why"

    result = Agent(model, tools=[recall], checks=[is_full, lambda answer, run: True]).run("why?", output=list[str])
    assert result.output == ["rain"] and seen == [([], []), (["rain"], [])]


def test_managed_agents_have_their_own_tools(script: Script) -> None:
    lead = script("""
[[reply]]
calls = [{ name = "perceptual", args = { task = "recall monday" } }]
[[reply]]
expect = ["rain it was"]
text = "Because of the rain."
""")
    below = script('[[reply]]\ncalls = [{ name = "recall", args = { query = "monday" } }]\n[[reply]]\ntext = "rain it was"')
    mate = Agent(below, name="perceptual", description="recalls facts", tools=[recall], max_steps=3)
    agent = Agent(lead, tools=[], managed_agents=[mate])
    result = agent.run("Why does the build break on Mondays?")
    paths = {event.path for event in result.events}
    assert str(result) == "Because of the rain." and any(path.startswith("perceptual:") for path in paths)


SERVER = '''
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "create_memory", "description": "Makes a memory.", "inputSchema":
                  {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "kept " + message["params"]["arguments"]["text"]}]}
    elif id is None:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
'''


def test_mcp_servers_are_tools(script: Script, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(SERVER)
    model = script('[[reply]]\ncalls = [{ name = "notes__create_memory", args = { text = "rain" } }]\n[[reply]]\nexpect = ["kept rain"]\ntext = "Kept."')
    server = mcp.stdio("python", str(tmp_path / "notes.py"), required=["create_memory"])
    agent = Agent(model, tools=[server], approve=lambda ask: ask.tool == "create_memory" and ask.server == "notes")
    assert str(agent.run("keep it")) == "Kept."
    assert str(agent.run("keep it again")) == "Kept."
    missing = mcp.stdio("python", str(tmp_path / "notes.py"), required=["forget"])
    with pytest.raises(gimlet.UsageError, match="forget"):
        Agent(model, tools=[missing]).run("keep it")


def test_a_tool_takes_the_place_of_a_built_in_one(script: Script) -> None:
    @tool(reads_only=True)
    def read_file(path: str) -> str:
        """Reads a file of the archive."""
        return f"the archive's {path}"

    model = script('[[reply]]\ncalls = [{ name = "read_file", args = { path = "x" } }]\n[[reply]]\nexpect = ["the archive\'s x"]\ntext = "Read."')
    assert str(Agent(model, tools=[read_file]).run("read")) == "Read."


def test_a_tool_of_smolagents_by_its_looks(script: Script) -> None:
    class Recall:
        name = "recall"
        description = "Find memories."
        inputs = {"query": {"type": "string", "description": "what"}, "limit": {"type": "integer", "description": "how many", "nullable": True}}
        output_type = "string"

        def forward(self, query: str, limit: int | None = None) -> str:
            return f"rain {query}"

        __call__ = forward

    result = Agent(script(RECALL), tools=[Recall()], approve="all").run("why?")
    assert result.output == '["rain"]'


def test_errors_have_the_fields_of_the_schema(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(gimlet.UsageError) as usage:
        Agent("nobody/knows", tools=[recall]).run("hi")
    assert usage.value.error == "WRONG_USAGE" and usage.value.message
    with pytest.raises(gimlet.UsageError, match="two tools are called"):
        other = creator([])
        other.name = "recall"
        Agent("x/y", tools=[recall, other]).run("hi")
    broken = script('[[reply]]\nfault = { kind = "status", status = 401, body = "no key" }')
    with pytest.raises(gimlet.RunFailed) as failed:
        Agent(broken, tools=[recall]).run("hi")
    assert failed.value.error.isupper() and failed.value.run and failed.value.events
    monkeypatch.setenv("GIMLET_BIN", "/nowhere/gimlet")
    with pytest.raises(gimlet.ProgramEnded) as missing:
        Agent("x/y").run("hi")
    assert missing.value.error == "PROGRAM_MISSING"


def test_a_program_that_ends_is_told_with_its_last_words(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "gimlet"
    fake.write_text("#!/bin/sh\necho 'the disk is full' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("GIMLET_BIN", str(fake))
    with pytest.raises(gimlet.ProgramEnded, match="the disk is full"):
        Agent("x/y").run("hi")


def test_leaving_the_loop_stops_the_run(script: Script) -> None:
    agent = Agent(script('[[reply]]\nfault = { kind = "hang" }'), tools=[recall])
    stream = agent.stream("why?")
    for event in stream:
        break
    stream.close()
    with pytest.raises(gimlet.GimletError):
        stream.result
    agent.model = script(RECALL)
    assert str(agent.run("why?")) == '["rain"]', "the program behind it is still good"
