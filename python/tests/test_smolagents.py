"""Agents of smolagents, unchanged, with their code in gimlet's sandbox. Skipped where smolagents is not installed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

smolagents = pytest.importorskip("smolagents")

import gimlet  # noqa: E402
from gimlet.smolagents import Executor  # noqa: E402


class Scripted(smolagents.Model):  # type: ignore[misc,name-defined]
    """A model that says what it is told to."""

    def __init__(self, *replies: str) -> None:
        super().__init__(model_id="scripted")
        self.replies = list(replies)

    def generate(self, messages: Any, **_: Any) -> Any:
        return smolagents.ChatMessage(role="assistant", content=f"Thought: so.\n<code>\n{self.replies.pop(0)}\n</code>")


def agent(*replies: str, executor: Executor | None = None, **options: Any) -> Any:
    options.setdefault("tools", [])
    return smolagents.CodeAgent(model=Scripted(*replies), executor=executor or gimlet.smolagents.Executor(), verbosity_level=0, **options)


def test_an_agent_works_unchanged(project: Path) -> None:
    @smolagents.tool  # type: ignore[misc]
    def double(n: int) -> int:
        """Doubles.

        Args:
            n: a number
        """
        return 2 * n

    made = agent("x = double(4)\nprint(x)", "final_answer(double(n=x) + 1)", tools=[double])
    assert made.run("go") == 17
    assert "8" in made.memory.steps[1].observations


def test_values_keep_their_types(project: Path) -> None:
    executor = Executor()
    executor.send_variables({"pair": (1, {2: "b"}), "empty": None})
    for code, value in [
        ("pair", (1, {2: "b"})), ("{1, 2}", {1, 2}), ("y = 3", 3), ("b'ab'", b"ab"), ("1 + 2j", 1 + 2j), ("None", None),
        ("empty is None", True), ("[i for i in range(3)]", [0, 1, 2]), ("'a\\n'", "a\n"), ("float('inf') > 1", True),
    ]:
        assert executor(code).output == value, code
    answered = executor("final_answer((1, {3: {4}}))")
    assert answered.output == (1, {3: {4}}) and answered.is_final_answer


def test_objects_stay_in_this_program(project: Path) -> None:
    class Image:
        pass

    image = Image()
    executor = Executor()
    executor.send_tools({"draw": lambda: image, "same": lambda given: given is image})
    assert executor("i = draw()\nsame(i)").output is True
    with pytest.raises(Exception, match="AttributeError"):
        executor("i.pixels")
    assert executor("final_answer(i)").output is image


def test_errors_name_the_line_and_prints_are_kept(project: Path) -> None:
    def fail() -> None:
        raise KeyError("who")

    executor = Executor()
    executor.send_tools({"fail": fail})
    with pytest.raises(Exception, match=r"at line '1 / 0' due to: ZeroDivisionError"):
        executor("print('before')\n1 / 0")
    assert executor.state["_print_outputs"] == "before\n"
    assert executor("try:\n    fail()\nexcept KeyError:\n    x = 'caught'\nx").output == "caught"
    with pytest.raises(Exception, match="is not allowed"):
        executor("import subprocess")


def test_nothing_of_this_machine_is_within_reach(project: Path) -> None:
    executor = Executor()
    for code in ["open('/etc/passwd').read()", "import socket", "__import__('os').system('id')", "import ctypes"]:
        with pytest.raises(Exception, match="Code execution failed"):
            executor(code)


def test_code_that_never_ends_is_stopped(project: Path) -> None:
    executor = Executor(timeout=0.5)
    with pytest.raises(Exception, match="(?i)time|second"):
        executor("while True: pass")
    assert executor("1 + 1").output == 2


def test_cleanup_ends_code_that_runs(project: Path) -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        waiting.set()
        go_on.wait(60)

    executor = Executor()
    executor.send_tools({"wait": wait})
    ended: list[BaseException] = []

    def work() -> None:
        try:
            executor("wait()")
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert waiting.wait(60)
    executor.cleanup()
    go_on.set()
    thread.join(60)
    assert not thread.is_alive() and "closed" in str(ended[0])


def test_a_managed_agent_is_called(project: Path) -> None:
    mate = agent("final_answer('rain')", name="mate", description="knows the weather")
    lead = agent("final_answer(mate('why?'))", managed_agents=[mate])
    assert "rain" in lead.run("why?")


def test_smolagents_tools_serve_agents_of_gimlet(project: Path, script: Any) -> None:
    class Recall(smolagents.Tool):  # type: ignore[misc,name-defined]
        name = "recall"
        description = "Find memories."
        inputs = {"query": {"type": "string", "description": "what"}}
        output_type = "string"

        def forward(self, query: str) -> str:
            return f"rain {query}"

    model = script('[[reply]]\ncalls = [{ name = "recall", args = { query = "q" } }]\n[[reply]]\nexpect = ["rain q"]\ntext = "Rain."')
    assert str(gimlet.Agent(model, tools=[Recall()], approve=lambda ask: True).run("why?")) == "Rain."
