"""The examples run, as they are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

Script = Callable[[str], str]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def example(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def load(name: str) -> Any:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def test_the_code_explorer(script: Script, example: Callable[[str], Any]) -> None:
    code = '''files = list_directory(pattern="**/*.py")
try:
    read_lines("../outside")
except Exception as error:
    print("refused:", error)
final_answer(f"{files[0]}: {read_lines(files[0]).splitlines()[1].strip()}")'''
    result = example("code_explorer").explorer(script(f"[[reply]]\ntext = '''```python\n{code}\n```'''")).run("what does add do?")
    assert str(result) == "calc.py: return a - b"
    refused = [event for event in result.events if event.type == "tool.finished" and not event.ok]
    assert [event.result["error"] for event in refused] == ["PATH_OUTSIDE"]


def test_the_five_layers(script: Script, example: Callable[[str], Any]) -> None:
    lead = script("""
[[reply]]
calls = [{ name = "perceptual", args = { task = "recall monday" } }]
[[reply]]
expect = ["restarts on Monday"]
calls = [{ name = "metacognitive", args = { task = "revise" } }]
[[reply]]
calls = [{ name = "memory__create_memory", args = { text = "Mondays explained." } }]
[[reply]]
expect = ["kept as 3"]
text = "The machine restarts and its disk is wiped."
""")
    module = example("five_layers")
    agent = module.hierarchy(lead)
    below = {
        "perceptual": '[[reply]]\ncalls = [{ name = "memory__semantic_recall", args = { query = "monday" } }]\n[[reply]]\ntext = "It restarts on Monday."',
        "metacognitive": '[[reply]]\ncalls = [{ name = "revise_model", args = { text = "restarts" } }]\n[[reply]]\ncalls = [{ name = "revise_model", args = { text = "more" } }]\n[[reply]]\nexpect = ["once a run"]\ntext = "Revised."',
    }
    for mate in agent.managed_agents:
        mate.model = script(below.get(mate.name, '[[reply]]\ntext = "Nothing."'))
    result = agent.run("Why does the build break on Mondays?")
    assert str(result) == "The machine restarts and its disk is wiped."
    assert module.REVISIONS == ["restarts"]
    assert {event.path.split(":")[0] for event in result.events if event.path} == {"perceptual", "metacognitive"}


def test_the_coding_agent(script: Script, example: Callable[[str], Any], project: Path) -> None:
    (project / "test_calc.py").write_text("from calc import add\n\ndef test_add():\n    assert add(2, 2) == 4\n")
    model = script("""
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "a - b", new_text = "a + b" } }]
[[reply]]
text = "Fixed."
[[reply]]
expect = ["Run the tests"]
calls = [{ name = "run_tests", args = { test_cmd = "python3 -c 'import test_calc; test_calc.test_add()'" } }]
[[reply]]
text = "It adds now."
""")
    module = example("coding_agent")
    seen = []

    def agree(ask: Any) -> bool:
        seen.append(ask)
        return True

    result = module.coding_agent(model, approve=agree).run("fix add")
    assert (project / "calc.py").read_text().endswith("return a + b\n")
    assert "a + b" in (seen[0].preview or "")
    assert "edit_file: 1 calls" in module.report(result) and "run_tests: 1 calls" in module.report(result)
