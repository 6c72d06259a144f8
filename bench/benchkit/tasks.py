"""Start-up, the two-step task, and a hundred of it at once."""

import statistics
from dataclasses import dataclass

from . import machine
from .agents import Agent, SmolagentsTools
from .bench import Bench, Failed, answered, weigh
from .measure import Fleet, Memory, run, run_together
from .server import Server


def start_up(bench: Bench) -> None:
    did = "`--version`; smolagents, which has none, is imported by a Python that prints its version"
    time = bench.row("start.time", "start-up", "time", did, "s")
    memory = bench.row("start.memory", "start-up", "memory", f"{did}; the most it used", "KB")
    for row in (time, memory):
        for agent in bench.everyone:
            if not agent.starts:
                row.missing.pop(agent.key, None)

    def timed(agent: Agent) -> None:
        ended = run(agent.start_up())
        if ended.code != 0:
            raise Failed(f"ended with {ended.code}")
        time.add(agent.key, ended.wall)

    def weighed(agent: Agent) -> None:
        # So short that one alone may end between two samples.
        memory.add(agent.key, weigh(lambda: [run(agent.start_up()) for _ in range(5)], pause=0))

    who = [agent for agent in bench.agents if agent.starts]
    for agent in who:
        run(agent.start_up())  # The first start reads from the disk and compiles; it does not count.
    bench.in_turns(bench.effort.start_rounds, [time], who, timed)
    bench.in_turns(bench.effort.memory_rounds, [memory], who, weighed)


def two_steps(bench: Bench) -> None:
    did = "a run from start to end: the model has a file read, then answers"
    time = bench.row("two.time", "two-step task", "time", did, "s")
    cpu = bench.row("two.cpu", "two-step task", "processor time", did, "s")
    memory = bench.row("two.memory", "two-step task", "memory", f"{did}; the most it used, its children included", "KB")

    def timed(agent: Agent) -> None:
        with Server(bench.places.server, agent.replies(2)) as server:
            ended = answered(run(agent.run(server.url, 2)))
        time.add(agent.key, ended.wall)
        cpu.add(agent.key, ended.cpu)

    def weighed(agent: Agent) -> None:
        with Server(bench.places.server, agent.replies(2)) as server:
            memory.add(agent.key, weigh(lambda: answered(run(agent.run(server.url, 2))), pause=0.001))

    bench.warm_up()
    bench.in_turns(bench.effort.task_rounds, [time, cpu], bench.agents, timed)
    bench.in_turns(bench.effort.memory_rounds, [memory], bench.agents, weighed)


@dataclass(frozen=True)
class Swarm:
    """Many runs at once: a process each, or threads of one process."""

    key: str
    label: str
    agent: Agent
    processes: int
    runs: int
    """In each process."""

    def go(self, url: str) -> Fleet:
        more = [self.runs] if self.runs > 1 else []
        fleet = run_together([self.agent.run(url, 2, *more)] * self.processes)
        for ended in fleet.runs:
            answered(ended, self.runs)
        return fleet


def parallel(bench: Bench) -> None:
    count = bench.effort.parallel
    group = f"{count} at once"
    did = f"{count} runs of the two-step task, started together, until the last has ended"
    time = bench.row("parallel.time", group, "time", did, "s")
    cpu = bench.row("parallel.cpu", group, "processor time", f"{did}; all of them together", "s")
    memory = bench.row("parallel.memory", group, "memory", f"{did}; the most they used together", "KB")
    rows = [time, cpu, memory]

    def timed(swarm: Swarm) -> None:
        with Server(bench.places.server, swarm.agent.replies(2)) as server:
            fleet = swarm.go(server.url)
        time.add(swarm.key, fleet.wall)
        cpu.add(swarm.key, fleet.cpu)

    def weighed(swarm: Swarm) -> None:
        with Server(bench.places.server, swarm.agent.replies(2)) as server, Memory(pause=0.05) as used:
            swarm.go(server.url)
        memory.add(swarm.key, used.peak_kb())

    bench.warm_up()
    swarms = [Swarm(agent.key, agent.label, agent, count, 1) for agent in bench.agents]
    for agent in bench.agents:
        if isinstance(agent, SmolagentsTools):
            # The kinder way to have many agents of smolagents: what takes long is loaded once.
            swarm = Swarm(f"{agent.key}-threads", f"{agent.label}, threads of one process", agent, 1, count)
            bench.labels[swarm.key] = swarm.label
            if agent.alike:
                bench.alike[swarm.key] = agent.alike
            swarms.append(swarm)
    for swarm in list(swarms):
        if why := _left_out(bench, swarm):
            swarms.remove(swarm)
            for row in rows:
                row.lacks(swarm.key, why)

    for rounds, measure in ((bench.effort.parallel_rounds, timed), (bench.effort.memory_rounds, weighed)):
        bench.in_turns(rounds, rows, [swarm for swarm in swarms if swarm.key not in time.missing], measure)


def _left_out(bench: Bench, swarm: Swarm) -> str | None:
    if swarm.processes == 1:
        return None
    # Already more than so many need, for they share pages; and the median, for one odd sample must not keep anybody out.
    weighed = [value for row in bench.rows if row.key == "two.memory" for value in row.values.get(swarm.key, [])]
    need = statistics.median(weighed or [0]) * swarm.processes
    if need > machine.available_kb() * 0.9:
        return f"left out: {swarm.processes} of them may need {need / 1024 / 1024:.0f} GB"
    return None
