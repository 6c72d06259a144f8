"""The long task: what a step costs early and late, what is sent, how much of it repeats, and what stays in memory."""

import itertools

from .agents import Agent
from .bench import Bench, Failed, answered
from .measure import Memory, run
from .server import Request, Server, kept_share, repeated_share


def long_run(bench: Bench) -> None:
    steps = bench.effort.long_steps
    third = steps // 3
    group = f"{steps}-step task"
    did = f"a run of {steps} steps, each reading another file"
    between = "from one request's arrival at the server to the next one's"
    time = bench.row("long.time", group, "time, whole", did, "s")
    early = bench.row("long.early", group, f"time of a step, first {third}", f"{did}; {between}", "s")
    late = bench.row("long.late", group, f"time of a step, last {third}", f"{did}; {between}", "s")
    sent = bench.row("long.sent", group, "bytes sent", f"{did}; all requests together", "bytes")
    last = bench.row("long.last", group, "size of the last request", did, "bytes")
    repeated = bench.row(
        "long.repeated", group, "share of a request that repeats the one before",
        f"{did}; from its beginning and byte for byte, of tools, system prompt and messages, the median request; "
        "who sends more of its own each time has more to repeat", "share",
        kind="share",
    )
    kept = bench.row(
        "long.kept", group, "share of a request that the next one keeps",
        f"{did}; the request that is kept least", "share", kind="share",
    )
    growth = bench.row(
        "long.growth", group, "growth of memory", f"{did}; from the end of its first third to its end", "MB", kind="plain",
    )

    def timed(agent: Agent) -> None:
        with Server(bench.places.server, agent.replies(steps)) as server:
            ended = answered(run(agent.run(server.url, steps)))
            requests, beside = _counted(server, steps)
        pairs = list(itertools.pairwise(requests))
        gaps = [after.at - before.at for before, after in pairs]
        time.add(agent.key, ended.wall)
        early.add(agent.key, sum(gaps[:third]) / third)
        late.add(agent.key, sum(gaps[-third:]) / third)
        sent.add(agent.key, sum(request.size for request in requests + beside))
        last.add(agent.key, requests[-1].size)
        shares = sorted(repeated_share(*pair) for pair in pairs)
        repeated.add(agent.key, shares[len(shares) // 2])
        kept.add(agent.key, min(kept_share(*pair) for pair in pairs))

    def weighed(agent: Agent) -> None:
        with Server(bench.places.server, agent.replies(steps)) as server, Memory(pause=0.001) as used:
            answered(run(agent.run(server.url, steps)))
            requests, _ = _counted(server, steps)
        half = max(1, third // 2)
        before = used.median_kb_between(requests[third - half].at, requests[third].at)
        after = used.median_kb_between(requests[-1 - half].at, requests[-1].at)
        if before is None or after is None:
            raise Failed("was too fast to be weighed")
        growth.add(agent.key, (after - before) / 1024)

    bench.warm_up()
    rows = [time, early, late, sent, last, repeated, kept]
    bench.in_turns(bench.effort.long_rounds, rows, bench.agents, timed)
    bench.in_turns(bench.effort.memory_rounds, [growth], bench.agents, weighed)


def _counted(server: Server, steps: int) -> tuple[list[Request], list[Request]]:
    """The requests of the steps, and short questions beside them, which begin otherwise than the conversation does."""
    requests = server.requests()
    beside = [request for request in requests if kept_share(requests[0], request) < 0.5]
    requests = [request for request in requests if request not in beside]
    if len(requests) != steps or len(beside) > 1:
        raise Failed(f"sent {len(requests)} requests for {steps} steps, and {len(beside)} beside them")
    return requests, beside
