"""The figures of the repository's README.md: a table and a list between two marks, made from the raw numbers like the report.

What a sentence says of a figure holds whichever way it falls; that gimlet is behind is told by bold type alone.
"""

import statistics
import textwrap

from .compare import Spread, between_runs, gimlet_is_behind, ratios, spread, relation
from .table import BASE

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
PEERS = {"smolagents-tools": "smolagents (tools)", "goose": "goose", "codex": "codex"}
SHELL = "gimlet-shell"
TABLE = [
    ("two.time", "time", BASE),
    ("two.memory", "memory", BASE),
    ("long.time", "time", BASE),
    ("long.time", "time, like for like", SHELL),
    ("long.early", "a step of its first third, like for like", SHELL),
    ("long.late", "a step of its last third, like for like", SHELL),
]
"""The rows: a row of the results, what it is called, and which of gimlet's ways the others stand beside."""
HEAD = """Everyone is served by the same scripted model, so that only the programs are compared: `bench/run` on {cores} cores of
{processor}, {date} ([all rows, the noise,{differ} and where gimlet is behind](bench/results/README.md)). A figure is
the median round, in brackets the least and the most; one without brackets was the same in every round. Those with an x are
multiples of gimlet's: below 1 gimlet takes more. Bold: gimlet is behind."""
LIKE = """In the table gimlet reads a file by its own tool, goose and codex by a shell without a jail. Like for like gimlet uses its
shell too, which is jailed."""


def put(page: str, made: str) -> str:
    """A page with another block between its marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page must have one {BEGIN} and after it one {END}")
    before, after = page[: page.index(BEGIN)], page[page.index(END) :]
    return f"{before}{BEGIN}\n\n{made}\n\n{after}"


def block(results: dict, others: list[dict]) -> str:
    """The figures of a run; other runs tell how far they can be believed."""
    rows = {row["key"]: row for row in results["rows"]}
    # The report tells it only where there is another run.
    differ = " how far runs differ," if others else ""
    head = HEAD.format(**results["machine"], date=results["date"], differ=differ)
    notes = [LIKE, _python(rows), _search(rows), _repeated(rows), *_between(results, others)]
    return "\n\n".join([_wrapped(head), _table(rows, results.get("alike", {})), "\n".join(_wrapped(note, "- ") for note in notes)])


def _wrapped(text: str, mark: str = "") -> str:
    indent = " " * len(mark)
    return textwrap.fill(text, 128, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _table(rows: dict[str, dict], alike: dict[str, str]) -> str:
    lines = ["| | " + " | ".join(PEERS.values()) + " |", "|---" * (len(PEERS) + 1) + "|"]
    for key, what, base in TABLE:
        if key in rows:
            cells = " | ".join(_figure(rows, key, who, base) if base in (BASE, alike.get(who)) else "" for who in PEERS)
            lines.append(f"| {rows[key]['group']}: {what} | {cells} |")
    return "\n".join(lines)


def _python(rows: dict[str, dict]) -> str:
    count = sum(key.startswith("python.") and key != "python.mean" for key in rows)
    return (
        f"Processor time of Python beside the sandbox's, geometric mean{f' of {count} programs' if count else ''}: smolagents' interpreter "
        f"{_figure(rows, 'python.mean', 'smolagents-python')}, CPython {_figure(rows, 'python.mean', 'cpython')}."
    )


def _search(rows: dict[str, dict]) -> str:
    return (
        f"Time of `rg` beside `rg_search`, each a whole process: {_figure(rows, 'search.few', 'rg')} where a few lines match, "
        f"{_figure(rows, 'search.none', 'rg')} where none does."
    )


def _repeated(rows: dict[str, dict]) -> str:
    told = [f"{name} {_figure(rows, 'long.repeated', who)}" for who, name in {BASE: "gimlet", **PEERS}.items()]
    return f"Share of a request that repeats the one before, which a server with a cache need not read again: {', '.join(told)}."


def _between(results: dict, others: list[dict]) -> list[str]:
    told = []
    for other in others:
        if factors := [factor for factor, _, _ in between_runs(results, other)]:
            told.append(
                f"Another run {relation(results, other)}: half of the report's medians within a factor of "
                f"{statistics.median(factors):.2f} of these, all within {max(factors):.2f}."
            )
    return told


def _figure(rows: dict[str, dict], key: str, who: str, base: str = BASE) -> str:
    """Someone's value with its spread, as a multiple of gimlet's or as a share."""
    row = rows.get(key, {"kind": "ratio", "values": {}})
    share = row["kind"] == "share"
    values = row["values"].get(who, []) if share else ratios(row, who, base)
    if not values:
        return "not measured"
    told = _spread(spread(values), " %", lambda value: f"{value * 100:.1f}") if share else _spread(spread(values), "x", _short)
    told += " (one round)" if len(values) == 1 else ""
    return f"**{told}**" if gimlet_is_behind(row, who, base) else told


def _spread(of: Spread, unit: str, tell) -> str:
    median, least, most = tell(of.median), tell(of.least), tell(of.most)
    return f"{median}{unit}" if least == most else f"{median}{unit} ({least} to {most})"


def _short(ratio: float) -> str:
    """To two digits or a little more: a reader compares, the report tells the rest."""
    return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
