"""The chart: one line a contestant, its median ratio to gimlet and its spread, on a logarithmic scale.

Plain SVG without scripts or fonts of its own; its colours follow the reader's light or dark.
"""

import math
from html import escape

from .compare import gimlet_is_behind, is_even, is_gimlet, noise, ratios, spread

ROWS = [
    "start.time", "start.memory", "two.time", "two.memory", "long.early", "long.late", "long.sent", "parallel.time",
    "parallel.cpu", "parallel.memory", "python.mean", "search.few",
]
WIDTH, LEFT, RIGHT, LINE, GAP, TOP = 1000, 270, 300, 15, 12, 56
TICKS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000]
STYLE = """
  svg { font: 12px system-ui, sans-serif; }
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #59636e } .grid { stroke: #d1d9e0 } .one { stroke: #1f2328 }
  .noise { fill: #d1d9e0; opacity: .55 } .ahead { fill: #0969da; stroke: #0969da } .behind { fill: #bc4c00; stroke: #bc4c00 }
  .even { fill: #818b98; stroke: #818b98 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #f0f6fc } .faint { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #f0f6fc }
    .noise { fill: #3d444d } .ahead { fill: #4493f8; stroke: #4493f8 } .behind { fill: #f0883e; stroke: #f0883e }
  }
"""


def svg(results: dict) -> str:
    rows = {row["key"]: row for row in results["rows"]}
    measured = [(rows[key], _others(rows[key], results["labels"])) for key in ROWS if key in rows]
    shown = [(row, others) for row, others in measured if others]
    reach = [ratio for row, others in shown for who in others for ratio in ratios(row, who)] + [0.5, 2.0]
    low, high = math.log(min(reach)) - 0.15, math.log(max(reach)) + 0.15

    def x(ratio: float) -> float:
        return LEFT + (math.log(ratio) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    height = TOP + sum(len(others) * LINE + GAP for _, others in shown) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        "<title>Ratios to gimlet, median and spread</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>',
        '<text class="ink" x="16" y="24" font-weight="600">What others take beside gimlet (gimlet = 1), log scale</text>',
        '<text class="faint" x="16" y="42">dot: median round, line: least to most, grey: gimlet beside itself; '
        "blue takes more than gimlet, orange less, grey dots cannot be told apart</text>",
    ]
    for tick in TICKS:
        if low <= math.log(tick) <= high:
            parts.append(
                f'<line class="{"one" if tick == 1 else "grid"}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{height - 24}"/>'
                f'<text class="faint" x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:g}x</text>'
            )
    y = TOP + GAP / 2
    for row, others in shown:
        parts += _row(row, others, results["labels"], y, x)
        y += len(others) * LINE + GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def _others(row: dict, labels: dict[str, str]) -> list[str]:
    return [who for who in labels if not is_gimlet(who) and ratios(row, who)]


def _row(row: dict, others: list[str], labels: dict[str, str], y: float, x) -> list[str]:
    factor = noise(row)
    title = escape(f"{row['group']}: {row['title']}")
    parts = [
        f'<text class="ink" x="16" y="{y + 12:.1f}">{title}</text>',
        f'<rect class="noise" x="{x(1 / factor):.1f}" y="{y:.1f}" width="{x(factor) - x(1 / factor):.1f}" height="{len(others) * LINE}"/>',
    ]
    for number, who in enumerate(others):
        found = spread(ratios(row, who))
        middle = y + number * LINE + LINE / 2
        tone = "behind" if gimlet_is_behind(row, who) else "even" if is_even(row, who) else "ahead"
        told = f"{found.median:.2f}x" if found.median < 10 else f"{found.median:.0f}x"
        parts.append(
            f'<line class="{tone}" stroke-width="2" x1="{x(found.least):.1f}" x2="{x(found.most):.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
            f'<circle class="{tone}" cx="{x(found.median):.1f}" cy="{middle:.1f}" r="4"/>'
            f'<text class="ink" x="{x(found.most) + 9:.1f}" y="{middle + 4:.1f}">{told} '
            f'<tspan class="faint">{escape(labels[who])}</tspan></text>'
        )
    return parts
