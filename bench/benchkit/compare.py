"""From raw values to what is told: ratios of a round, their median and spread, and the noise they must beat."""

import math
import statistics
from dataclasses import dataclass

from .table import AGAIN, BASE


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


def gimlet_is_behind(row: dict, who: str, base: str = BASE) -> bool:
    """Whether someone else is better than gimlet, in one of its ways, by more than the noise."""
    own, other = row["values"].get(base), row["values"].get(who)
    if is_gimlet(who) or not own or not other:
        return False
    match row["kind"]:
        case "ratio":
            found = ratios(row, who, base)
            return bool(found) and spread(found).median < 1 / noise(row)
        case "share":
            return spread(other).median > max(_with_again(row, base))
        case "plain":
            return spread(other).median < min(_with_again(row, base))
        case kind:
            raise ValueError(f"no such kind of row: {kind}")


def _with_again(row: dict, base: str) -> list[float]:
    return row["values"][base] + (row["values"].get(AGAIN, []) if base == BASE else [])
