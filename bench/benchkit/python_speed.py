"""How fast Python is: gimlet's interpreter, CPython's and smolagents', in processor time."""

import json
import math
import subprocess
from pathlib import Path

from .agents import Gimlet, SmolagentsTools
from .bench import Bench, Failed
from .measure import Command, run

RIVAL = "crates/gimlet-python/benches/python/rival.py"
"""Runs programs in another interpreter and tells what each took; the crate's own bench uses it too."""


class Sandbox:
    """`gimlet python`, a process for each program. What an empty program takes is not the interpreter's speed."""

    def __init__(self, gimlet: Gimlet, empty: Path):
        self.key, self.label, self._gimlet = gimlet.key, gimlet.label, gimlet
        self._empty = sorted(self._took(empty) for _ in range(5))[2]

    def _took(self, program: Path) -> float:
        ended = run(self._gimlet.python(program))
        if ended.code != 0:
            raise Failed(f"{program.stem}: ended with {ended.code}: {ended.output.strip()[-200:]}")
        return ended.cpu

    def seconds(self, program: Path) -> float:
        return self._took(program) - self._empty

    def close(self) -> None:
        pass


class Rival:
    """Another interpreter, one process for all programs, which tells the time of each itself."""

    def __init__(self, key: str, command: Command):
        self.key = key
        self._process = subprocess.Popen(
            command.argv, env=command.env, cwd=command.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.label = self._line().partition(" (")[0]

    def _line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise Failed("ended early")
        return line.strip()

    def seconds(self, program: Path) -> float:
        if self._process.stdin:
            self._process.stdin.write(json.dumps(program.read_text()) + "\n")
            self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self._process.communicate()


def python_speed(bench: Bench) -> None:
    places, effort = bench.places, bench.effort
    programs = sorted((places.bench / "programs").glob("*.py"))
    rows = {
        program: bench.row(
            f"python.{program.stem}", "Python", program.stem.replace("_", " "),
            f"processor time of bench/programs/{program.name}; gimlet's without that of an empty program", "s", agents=False,
        )
        for program in programs
    }
    mean = bench.row(
        "python.mean", "Python", "geometric mean of the programs", "the rows above, round by round", "s", agents=False
    )
    every = [*rows.values(), mean]

    empty = places.work / "empty.py"
    empty.write_text("pass\n")
    own = [agent for agent in bench.agents if agent.key in ("gimlet", "gimlet-again")]
    contestants: list[Sandbox | Rival] = [Sandbox(agent, empty) for agent in own if isinstance(agent, Gimlet)]
    rival = str(places.bench.parent / RIVAL)
    contestants.append(Rival("cpython", Command(["python3", rival], places.environment("cpython"), places.project)))
    slow: list[Sandbox | Rival] = []
    smolagents = next(agent for agent in bench.everyone if isinstance(agent, SmolagentsTools))
    if why := smolagents.missing():
        bench.labels["smolagents-python"] = "smolagents' interpreter"
        for row in every:
            row.missing["smolagents-python"] = why
    else:
        command = Command([str(places.python), rival, "smolagents"], places.environment("smolagents"), places.project)
        slow.append(Rival("smolagents-python", command))

    def measure(one: Sandbox | Rival) -> None:
        took = {program: one.seconds(program) for program in programs}
        if min(took.values()) <= 0:
            raise Failed("took no longer than an empty program")
        for program, seconds in took.items():
            rows[program].add(one.key, seconds)
        mean.add(one.key, math.exp(sum(map(math.log, took.values())) / len(took)))

    bench.labels.update({one.key: one.label for one in [*contestants, *slow]})
    together = min(effort.slow_python_rounds, effort.python_rounds)
    bench.in_turns(together, every, contestants + slow, measure)
    bench.in_turns(effort.python_rounds - together, every, contestants, measure)
    for one in contestants + slow:
        one.close()
