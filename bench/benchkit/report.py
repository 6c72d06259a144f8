"""The report in Markdown. Everything in it comes from the JSON."""

import json
import statistics
from pathlib import Path

from . import chart, readme
from .compare import TELLING, between_runs, gimlet_is_behind, is_even, is_gimlet, noise, only_in, ratios, relation, spread
from .table import AGAIN, BASE

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "bench/results"
"""Of the numbers in this folder the repository's README.md tells a few."""

HEAD = """# Gimlet beside what people use instead

Made by `bench/run` from [{raw}]({raw}): {date}, {machine}. Gimlet {gimlet} at {revision}, beside {peers}.{quick}

![Ratios to gimlet]({chart})

A ratio is someone's value by gimlet's value of the same round: 3x is three times what gimlet took, below 1 gimlet took more.
Rounds are taken in turns, another one first each time; a cell tells the median round and, in brackets, the least and the most.
Everyone gets its replies from the same scripted server, so no model's time is in these numbers, and everyone reads the same files. In a step

{does}
"""
BEHIND = f"""Gimlet is behind where the median ratio is below 1 by more than the noise of the row, or where every round is below 1 and there
were at least {TELLING}; in a row of values and not ratios, where someone's median is better than each of gimlet's. Like for like is
beside gimlet working as the other does, by its shell or by code."""


def write(raw: Path, folder: Path, page: Path | None = None) -> list[Path]:
    """Writes the report and its chart from raw numbers, and the figures of a page: the one named, or of published numbers the
    repository's README.md. Other numbers beside them tell how far two runs differ."""
    results = json.loads(raw.read_text())
    beside = {path.name: json.loads(path.read_text()) for path in sorted(raw.parent.glob("*.json")) if path != raw}
    others = {name: other for name, other in beside.items() if not (results["quick"] or other["quick"])}
    written = {"README.md": markdown(results, raw.name, others), "chart.svg": chart.svg(results)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (folder / name).write_text(text)
    paths = [folder / name for name in written]
    if page is None and folder.resolve() == PUBLISHED and not results["quick"]:
        page = ROOT / "README.md"
    if page is not None:
        page.write_text(readme.put(page.read_text(), readme.block(results, list(others.values()))))
        paths.append(page)
    return paths


def markdown(results: dict, raw: str, beside: dict[str, dict]) -> str:
    labels, rows = results["labels"], results["rows"]
    groups: dict[str, list[dict]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    parts = [_head(results, raw), _noise(rows), *(_again(results, name, other) for name, other in beside.items())]
    parts += [_group(name, of_group, labels) for name, of_group in groups.items()]
    parts.append(_behind(rows, labels, results.get("alike", {})))
    return "\n".join(parts)


def _head(results: dict, raw: str) -> str:
    machine, versions, labels = results["machine"], dict(results["versions"]), results["labels"]
    described = (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB, {machine['kernel']}, "
        f"load {machine['load_at_start']} at the start, {results['minutes']} minutes"
    )
    gimlet = versions.pop(BASE, "unknown")
    names = {"smolagents-tools": "smolagents", "python3": "CPython"}
    peers = ", ".join(f"{names.get(key, labels.get(key, key))} {version}" for key, version in versions.items())
    does = "\n".join(f"- {labels[key]}: {how}" for key, how in results["does"].items())
    quick = "\n\n**This was a quick run, to see that everything works: its numbers mean nothing.**" if results["quick"] else ""
    return HEAD.format(
        raw=raw, chart="chart.svg", date=results["date"], machine=described, gimlet=gimlet,
        revision=results["revision"], peers=peers, does=does, quick=quick,
    )


def _noise(rows: list[dict]) -> str:
    found = [(row, ratios(row, AGAIN)) for row in rows if row["kind"] == "ratio" and ratios(row, AGAIN)]
    if not found:
        return "## Noise\n\nGimlet was not measured beside itself.\n"
    medians = [spread(of_row).median for _, of_row in found]
    worst = max((row for row, _ in found), key=noise)
    return (
        "## Noise\n\n"
        f"Gimlet takes part twice. Beside itself its median ratio lies between {_times(min(medians))} and {_times(max(medians))}; "
        f"the worst single round differs by a factor of {noise(worst):.2f} ({worst['group']}, {worst['title']}). "
        "Where a ratio is nearer to 1 than gimlet's own worst round of that row, the cell says ≈; but gimlet is called behind, and "
        f"not ≈, where it lost every round of at least {TELLING}, however narrowly.\n"
    )


def _again(results: dict, name: str, other: dict) -> str:
    told = [f"Another run {relation(results, other)}, [{name}]({name}),"]
    if found := between_runs(results, other):
        factor, row, who = found[0]
        half = statistics.median(factor for factor, _, _ in found)
        told.append(
            f"has the same medians of others within a factor of {half:.2f} in half of the cells that both have, and of "
            f"{factor:.2f} in all (the farthest: {row['group']}, {row['title']}, {results['labels'][who]})."
        )
    else:
        told.append("has no cell of others in common with this one.")
    told += [f"Only this one measured {lacking}." for lacking in _lacking(results, other)]
    told += [f"Only that one measured {lacking}." for lacking in _lacking(other, results)]
    return " ".join(told) + "\n"


def _lacking(one: dict, other: dict) -> list[str]:
    """What only one of two runs has, in words: nothing or one text."""
    told = [
        f"{group} ({', '.join(one['labels'][key] for key in who)})" if who else group
        for group, who in only_in(one, other).items()
    ]
    return ["; ".join(told)] if told else []


def _group(name: str, rows: list[dict], labels: dict[str, str]) -> str:
    who = [key for key in labels if any(key in row["values"] or key in row["missing"] for row in rows)]
    lines = [f"## {name[0].upper()}{name[1:]}", "", "| | " + " | ".join(labels[key] for key in who) + " |"]
    lines.append("|---" * (len(who) + 1) + "|")
    for row in rows:
        lines.append(f"| {row['title']} | " + " | ".join(_cell(row, key) for key in who) + " |")
    lines.append("")
    lines += [f"- *{row['title']}*: {row['did']}{_rounds(row)}." for row in rows]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for key, why in row["missing"].items():
            reasons.setdefault((key, why), []).append(row["title"])
    lines += [f"- **{labels.get(key, key)}** is missing ({', '.join(titles)}): {why}" for (key, why), titles in reasons.items()]
    return "\n".join(lines) + "\n"


def _rounds(row: dict) -> str:
    counts = sorted({len(values) for values in row["values"].values()})
    if not counts:
        return ""
    told = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"; {told} round{'' if counts[-1] == 1 else 's'}"


def _cell(row: dict, who: str) -> str:
    if not row["values"].get(who):
        return "missing" if who in row["missing"] else ""
    if row["kind"] == "ratio":
        if who == BASE:
            return "1"
        if not ratios(row, who):
            return "missing"
        about = " ≈" if who != AGAIN and is_even(row, who) else ""
    else:
        about = ""
    told = _told(row, who, BASE) + about
    return f"**{told}** (gimlet is behind)" if gimlet_is_behind(row, who) else told


def _told(row: dict, who: str, base: str) -> str:
    """Someone's value: in multiples of one of gimlet's ways, or as it is."""
    match row["kind"]:
        case "ratio":
            return _values(ratios(row, who, base), _times)
        case "share":
            return _values(row["values"][who], lambda share: f"{share * 100:.1f} %")
        case "plain":
            return _values(row["values"][who], lambda amount: f"{amount:.1f} {row['unit']}")
        case kind:
            raise ValueError(f"no such kind of row: {kind}")


def _own(row: dict, base: str) -> str:
    """Gimlet's own value, where the row has values and not ratios."""
    return "" if row["kind"] == "ratio" else f": {_told(row, base, base)}"


def _values(values: list[float], tell) -> str:
    of = spread(values)
    median, least, most = tell(of.median), tell(of.least), tell(of.most)
    if len(values) == 1:
        return f"{median} (one round)"  # Otherwise it would read as the same in every round.
    return median if least == most else f"{median} ({least} to {most})"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x" if ratio < 100 else f"{ratio:.0f}x"


def _behind(rows: list[dict], labels: dict[str, str], alike: dict[str, str]) -> str:
    lines = ["## Where gimlet is behind", "", BEHIND, ""]
    found = []
    for row in rows:
        for who in labels:
            about = f"- {row['group']}, {row['title']}: {labels[who]}"
            if gimlet_is_behind(row, who):
                found.append(f"{about} {_told(row, who, BASE)}")
            elif (base := alike.get(who)) and gimlet_is_behind(row, who, base):
                found.append(f"{about} {_told(row, who, base)}, like for like ({labels[base]}{_own(row, base)})")
    others = [who for row in rows for who in row["values"] if not is_gimlet(who)]
    nothing = "In none of these rows." if others else "Nobody else was measured."
    return "\n".join(lines + (found or [nothing])) + "\n"
