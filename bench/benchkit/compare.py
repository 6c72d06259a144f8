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


def ratios(row: dict, who: str) -> list[float]:
    """Someone's values by gimlet's of the same round."""
    return [other / own for other, own in zip(row["values"].get(who, []), row["values"].get(BASE, []), strict=False) if own > 0]


def noise(row: dict) -> float:
    """The factor by which gimlet differed from itself in the worst round."""
    return math.exp(max((abs(math.log(ratio)) for ratio in ratios(row, AGAIN) if ratio > 0), default=0.0))


def is_gimlet(who: str) -> bool:
    return who.split("-")[0] == BASE


def gimlet_is_behind(row: dict, who: str) -> bool:
    """Whether someone else is better by more than the noise."""
    own, other = row["values"].get(BASE), row["values"].get(who)
    if is_gimlet(who) or not own or not other:
        return False
    match row["kind"]:
        case "ratio":
            found = ratios(row, who)
            return bool(found) and spread(found).median < 1 / noise(row)
        case "share":
            return spread(other).median > max(own + row["values"].get(AGAIN, []))
        case "plain":
            return spread(other).median < min(own + row["values"].get(AGAIN, []))
        case kind:
            raise ValueError(f"no such kind of row: {kind}")
