"""How rounds are taken: everyone in turn, so that whatever else the machine does meets all alike."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .agents import ANSWER, Agent, Places
from .measure import Memory, Run, run
from .server import Server
from .table import Row


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    start_rounds: int
    task_rounds: int
    long_rounds: int
    long_steps: int
    memory_rounds: int
    parallel: int
    parallel_rounds: int
    python_rounds: int
    python_repeats: int
    """How often a program is run in a round, but for who takes seconds for one."""
    slow_python_rounds: int
    search_files: int
    search_rounds: int


FULL = Effort(
    start_rounds=11,
    task_rounds=7,
    long_rounds=3,
    long_steps=60,
    memory_rounds=3,
    parallel=100,
    parallel_rounds=2,
    python_rounds=5,
    python_repeats=10,
    slow_python_rounds=3,
    search_files=30_000,
    search_rounds=9,
)

QUICK = Effort(
    start_rounds=2,
    task_rounds=2,
    long_rounds=1,
    long_steps=6,
    memory_rounds=1,
    parallel=3,
    parallel_rounds=1,
    python_rounds=1,
    python_repeats=2,
    slow_python_rounds=1,
    search_files=200,
    search_rounds=2,
)


class Failed(Exception):
    """Someone did not do what was asked; why, in a line."""


def weigh(action: Callable[[], object], pause: float) -> int:
    """The most memory, in KB, that the programs of an action used; again when it was over before the first sample."""
    for _ in range(20):
        with Memory(pause) as used:
            action()
        if used.peak_kb():
            return used.peak_kb()
    raise Failed("was always over before it could be weighed")


def answered(run: Run, times: int = 1) -> Run:
    """The run, if it ended well and gave the answer of the script."""
    last = next((line for line in reversed(run.output.splitlines()) if line.strip()), "nothing")
    if run.code != 0:
        raise Failed(f"ended with {run.code}: {last.strip()[:200]}")
    if run.output.count(ANSWER) < times:
        raise Failed(f"did not give the answer; the last it said is: {last.strip()[:200]}")
    return run


@dataclass
class Bench:
    places: Places
    effort: Effort
    everyone: list[Agent]
    say: Callable[[str], None]
    rows: list[Row] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    alike: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.absent = {agent.key: why for agent in self.everyone if (why := agent.missing())}
        self.agents = [agent for agent in self.everyone if agent.key not in self.absent]
        self.labels.update({agent.key: agent.label for agent in self.everyone})
        self.alike.update({agent.key: agent.alike for agent in self.everyone if agent.alike})
        self._warm = False

    def row(self, *args: str, agents: bool = True, **more: str) -> Row:
        row = Row(*args, **more)
        if agents:
            row.missing.update(self.absent)
        self.rows.append(row)
        return row

    def warm_up(self) -> None:
        """Lets every agent run once before anything counts: files come from the disk, caches are filled."""
        if not self._warm:
            for agent in self.agents:
                with Server(self.places.server, agent.replies(2)) as server:
                    run(agent.run(server.url, 2))
            self._warm = True

    def in_turns(self, rounds: int, rows: list[Row], everyone: list[Any], measure: Callable[[Any], None]) -> None:
        """Lets everyone (who has a `key` and a `label`) go once a round, another one first each time. Who fails is out, and
        the rows say why."""
        left = list(everyone)
        for number in range(rounds):
            at = number % max(1, len(left))
            for one in left[at:] + left[:at]:
                try:
                    measure(one)
                except Failed as failed:
                    why = self.places.without_paths(str(failed))
                    self.say(f"  {one.label}: {why}")
                    left.remove(one)
                    for row in rows:
                        row.lacks(one.key, why)
