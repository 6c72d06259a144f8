"""From raw values to what is told: ratios of a round, their median and spread, and the noise they must beat."""

import math
import statistics
from dataclasses import dataclass

from .table import AGAIN, BASE

TELLING = 3
"""From so many rounds on, that all of them are against gimlet is no accident of noise."""


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float


def spread(values: list[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratios(row: dict, who: str, base: str = BASE) -> list[float]:
    """Someone's values by gimlet's of the same round."""
    return [other / own for other, own in zip(row["values"].get(who, []), row["values"].get(base, []), strict=False) if own > 0]


def noise(row: dict) -> float:
    """The factor by which gimlet differed from itself in the worst round."""
    return math.exp(max((abs(math.log(ratio)) for ratio in ratios(row, AGAIN) if ratio > 0), default=0.0))


def is_gimlet(who: str) -> bool:
    return who.split("-")[0] == BASE


def between_runs(one: dict, other: dict) -> list[tuple[float, dict, str]]:
    """By which factor the medians of two runs differ, the greatest first: the factor, the row, and who."""
    rows = {row["key"]: row for row in other["rows"]}
    found = []
    for row in one["rows"]:
        if row["kind"] != "ratio" or row["key"] not in rows:
            continue
        for who in row["values"]:
            medians = [statistics.median(of) for of in (ratios(row, who), ratios(rows[row["key"]], who)) if of]
            if not is_gimlet(who) and len(medians) == 2:
                found.append((max(medians) / min(medians), row, who))
    return sorted(found, key=lambda entry: entry[0], reverse=True)


def relation(one: dict, other: dict) -> str:
    """Of which commit, on which machine another run was, beside this one; whatever else that machine had to do."""
    ours, theirs = ({**of["machine"], "load_at_start": None} for of in (one, other))
    commit = "the same commit" if one["revision"] == other["revision"] else f"commit {other['revision']}"
    machine = "the same machine" if ours == theirs else f"another machine ({theirs['cores']} cores of {theirs['processor']})"
    return f"of {commit} on {machine}"


def only_in(one: dict, other: dict) -> dict[str, list[str]]:
    """What one run measured and another did not: by group, who. Nobody is named where the other has nothing of the group."""
    ours, theirs = _measured(one), _measured(other)
    found: dict[str, list[str]] = {}
    for group, cells in ours.items():
        if group not in theirs:
            found[group] = []
        elif lost := cells - theirs[group]:
            found[group] = [who for who in one["labels"] if any(who == name for _, name in lost)]
    return found


def _measured(results: dict) -> dict[str, set[tuple[str, str]]]:
    """The cells that have values, as row and who, by group."""
    groups: dict[str, set[tuple[str, str]]] = {}
    for row in results["rows"]:
        if cells := {(row["key"], who) for who, values in row["values"].items() if values}:
            groups.setdefault(row["group"], set()).update(cells)
    return groups


def is_even(row: dict, who: str) -> bool:
    """Whether someone cannot be told apart from gimlet. What is called behind is not also called even."""
    inside = 1 / noise(row) <= spread(ratios(row, who)).median <= noise(row)
    return inside and not gimlet_is_behind(row, who)


def gimlet_is_behind(row: dict, who: str, base: str = BASE) -> bool:
    """Whether someone else is better than gimlet, in one of its ways: by more than the noise, or by little but always.

    The noise is that of plain gimlet beside itself, the only one there is twice. Another of its ways may well be steadier, so
    that a loss of every round counts, however small.
    """
    own, other = row["values"].get(base), row["values"].get(who)
    if is_gimlet(who) or not own or not other:
        return False
    match row["kind"]:
        case "ratio":
            found = ratios(row, who, base)
            always = len(found) >= TELLING and max(found) < 1
            return always or (bool(found) and spread(found).median < 1 / noise(row))
        case "share":
            return spread(other).median > max(_with_again(row, base))
        case "plain":
            return spread(other).median < min(_with_again(row, base))
        case kind:
            raise ValueError(f"no such kind of row: {kind}")


def _with_again(row: dict, base: str) -> list[float]:
    return row["values"][base] + (row["values"].get(AGAIN, []) if base == BASE else [])
