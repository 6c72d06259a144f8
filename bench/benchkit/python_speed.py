"""How fast Python is: gimlet's interpreter, CPython's and smolagents', in processor time.

Once through a program is too short to be told from noise, so its text is run several times over, as one program, and a value
is the time of one. Longer programs would be no way: smolagents takes seconds for these, and ends a program that does more than
ten million operations, a few times what they do.
"""

import json
import math
import statistics
import subprocess
from pathlib import Path

from .agents import Gimlet, SmolagentsTools
from .bench import Bench, Failed
from .measure import Command, run

RIVAL = "crates/gimlet-python/benches/python/rival.py"
"""Runs programs in another interpreter and tells what each took; the crate's own bench uses it too."""


class Sandbox:
    """`gimlet python`, a process for each program. What an empty program takes is not the interpreter's speed."""

    def __init__(self, gimlet: Gimlet, scratch: Path, repeats: int):
        self.key, self.label, self._gimlet = gimlet.key, gimlet.label, gimlet
        self._scratch, self._repeats = scratch, repeats

    def _took(self, name: str, text: str) -> float:
        program = self._scratch / f"{name}.py"
        program.write_text(text)
        ended = run(self._gimlet.python(program))
        if ended.code != 0:
            raise Failed(f"{name}: ended with {ended.code}: {ended.output.strip()[-200:]}")
        return ended.cpu

    def round(self, programs: list[Path]) -> list[float]:
        # Anew each time: the machine's speed drifts, and what is taken away must drift with it.
        empty = statistics.median(self._took("empty", "pass\n") for _ in range(3))
        return [(self._took(one.stem, one.read_text() * self._repeats) - empty) / self._repeats for one in programs]

    def close(self) -> None:
        pass


class Rival:
    """Another interpreter, one process for all programs, which tells the time of each itself."""

    def __init__(self, key: str, command: Command, repeats: int):
        self.key, self._repeats = key, repeats
        self._process = subprocess.Popen(
            command.argv, env=command.env, cwd=command.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.label = self._line().partition(" (")[0]

    def _line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise Failed("ended early")
        return line.strip()

    def _took(self, text: str) -> float:
        if self._process.stdin:
            self._process.stdin.write(json.dumps(text) + "\n")
            self._process.stdin.flush()
        return float(self._line())

    def round(self, programs: list[Path]) -> list[float]:
        return [self._took(one.read_text() * self._repeats) / self._repeats for one in programs]

    def close(self) -> None:
        self._process.communicate()


def python_speed(bench: Bench) -> None:
    places, effort = bench.places, bench.effort
    programs = sorted((places.bench / "programs").glob("*.py"))
    rows = {
        program: bench.row(
            f"python.{program.stem}", "Python", program.stem.replace("_", " "),
            f"processor time of bench/programs/{program.name}, run {effort.python_repeats} times over and by smolagents once; "
            "gimlet's without that of an empty program, taken anew each round", "s", agents=False,
        )
        for program in programs
    }
    mean = bench.row(
        "python.mean", "Python", "geometric mean of the programs", "the rows above, round by round", "s", agents=False
    )
    every = [*rows.values(), mean]

    repeats, scratch = effort.python_repeats, places.work / "programs"
    scratch.mkdir()
    own = [agent for agent in bench.agents if agent.key in ("gimlet", "gimlet-again")]
    contestants: list[Sandbox | Rival] = [
        Sandbox(agent, scratch, repeats) for agent in own if isinstance(agent, Gimlet)
    ]
    rival = str(places.bench.parent / RIVAL)
    command = Command(["python3", rival], places.environment("cpython"), places.project)
    contestants.append(Rival("cpython", command, repeats))
    slow: list[Sandbox | Rival] = []
    smolagents = next(agent for agent in bench.everyone if isinstance(agent, SmolagentsTools))
    if why := smolagents.missing():
        bench.labels["smolagents-python"] = "smolagents' interpreter"
        for row in every:
            row.missing["smolagents-python"] = why
    else:
        command = Command([str(places.python), rival, "smolagents"], places.environment("smolagents"), places.project)
        slow.append(Rival("smolagents-python", command, repeats=1))

    def measure(one: Sandbox | Rival) -> None:
        took = dict(zip(programs, one.round(programs), strict=True))
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
