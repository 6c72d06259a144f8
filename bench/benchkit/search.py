"""`rg_search` beside `rg`, each as a process of its own, in a generated tree of small source files."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .agents import Gimlet
from .bench import Bench, Failed
from .measure import Command, run

PATTERNS = {"few": ("a few matches", "the n[e]+dle"), "none": ("no match", "nowhere to be f[o]und")}
HIT = "file07.py"
"""The name of every file that holds the needle, and of no other that could be printed."""


@dataclass(frozen=True)
class Searcher:
    key: str
    label: str
    command: Callable[[str], Command]


def search(bench: Bench) -> None:
    places, files = bench.places, bench.effort.search_files
    tree = places.work / "tree"
    _make(tree, files)
    rows = {
        pattern: bench.row(
            f"search.{key}", "search", title,
            f"`{pattern}` in {files:,} files: `gimlet tools call rg_search` beside `rg --line-number`, each a whole process",
            "s", agents=False,
        )
        for key, (title, pattern) in PATTERNS.items()
    }
    who = [
        Searcher(agent.key, agent.label, lambda pattern, agent=agent: agent.tool("rg_search", tree, pattern=pattern))
        for agent in bench.agents
        if agent.key in ("gimlet", "gimlet-again") and isinstance(agent, Gimlet)
    ]
    bench.labels["rg"] = "rg"
    if rg := shutil.which("rg"):
        environment = places.environment("rg")
        who.append(Searcher("rg", "rg", lambda pattern: Command([rg, "--line-number", pattern], environment, tree)))
    else:
        for row in rows.values():
            row.missing["rg"] = "not on the path"

    def measure(one: Searcher) -> None:
        for pattern, row in rows.items():
            ended = run(one.command(pattern))
            # rg says by its exit code that nothing matched.
            if ended.code not in (0, 1) or (HIT in ended.output) != ("dle" in pattern):
                raise Failed(f"ended with {ended.code}: {ended.output.strip()[-200:]}")
            row.add(one.key, ended.wall)

    for one in who:
        run(one.command("warm-up"))
    bench.in_turns(bench.effort.search_rounds, list(rows.values()), who, measure)


def _make(tree: Path, files: int) -> None:
    for folder in range(files // 100):
        path = tree / f"pkg{folder % 50:02}" / f"mod{folder:04}"
        path.mkdir(parents=True)
        for file in range(100):
            lines = [f"def function_{folder}_{file}_{line}(argument): return {line}\n" for line in range(20)]
            if file == 7 and folder % 100 == 1:
                lines.append("# the needle\n")
            (path / f"file{file:02}.py").write_text("".join(lines))
