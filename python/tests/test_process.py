"""The child: Ctrl-C stops the run and not this process, and the child ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

import gimlet
from gimlet import Agent, tool

Script = Callable[[str], str]
HANG = '[[reply]]\nfault = { kind = "hang" }\n'


def test_ctrl_c_stops_the_run_and_nothing_else(script: Script) -> None:
    agent = Agent(script(HANG))
    stream = agent.stream("think")


    def interrupt() -> None:
        while not any(event.type == "step.started" for event in list(stream._turn.events)):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(gimlet.Interrupted) as raised:
        stream.result
    assert raised.value.run == stream.run
    shown = subprocess.run([os.environ["GIMLET_BIN"], "runs", "show", stream.run], capture_output=True, text=True)
    assert "think" in shown.stdout
    agent.model = script('[[reply]]\ntext = "Here."')
    assert str(agent.run("still there?")) == "Here."


def test_ctrl_c_in_a_tool_stops_the_run(script: Script) -> None:
    @tool(reads_only=True)
    def slow() -> str:
        """Takes long."""
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
        return ""

    model = script('[[reply]]\ncalls = [{ name = "slow", args = {} }]\n[[reply]]\ntext = "no"')
    with pytest.raises(gimlet.Interrupted):
        Agent(model, tools=[slow]).run("go")


PARENT = """
import sys, gimlet
stream = gimlet.Agent(sys.argv[1]).stream("think")
for event in stream:
    if event.type == "step.started":
        print(stream._turn.connection._process.pid, flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_ends_with_its_parent(script: Script, how: signal.Signals) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(gimlet.__file__).parents[1])}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, script(HANG)], stdout=subprocess.PIPE, env=env)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(how)
    parent.wait()
    deadline = time.monotonic() + 60
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_fork_does_not_hold_the_child(script: Script) -> None:
    agent = Agent(script('[[reply]]\ntext = "One."'))
    agent.run("hi")
    connection = agent._keep.connection()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if not connection.is_alive else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert connection.is_alive
    agent.close()
    assert not _is_running(connection._process.pid)


def test_a_variable_set_later_reaches_the_program(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(script('[[reply]]\ntext = "One."'))
    agent.run("hi")
    first = agent._keep.connection()
    monkeypatch.setenv("MODEL_TEMPERATURE", "0.3")
    agent.run("hi")
    assert agent._keep.connection() is not first
