"""The results as they are kept: rows, each with the raw values of every contestant. The report knows nothing else."""

from dataclasses import dataclass, field

BASE = "gimlet"
AGAIN = "gimlet-again"


@dataclass
class Row:
    """One thing that was measured. Values stand in the order of the rounds, so that those of one round can be compared."""

    key: str
    group: str
    title: str
    did: str
    """What was done to get a value."""
    unit: str
    kind: str = "ratio"
    """`ratio` is told as a ratio to gimlet's, less is better; `share` as it is, more is better."""
    values: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Who has no value, and why."""

    def add(self, who: str, value: float) -> None:
        self.values.setdefault(who, []).append(value)

    def lacks(self, who: str, why: str) -> None:
        self.values.pop(who, None)
        self.missing[who] = why
