"""The report: shares with their intervals, tokens and seconds per success, and who passed what."""

import math
import statistics

Z = 1.959964


def wilson(passed: int, tries: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score, which also holds for few tries and shares near 0 and 1."""
    if tries == 0:
        return 0.0, 1.0
    share, square = passed / tries, Z * Z
    middle = share + square / (2 * tries)
    spread = Z * math.sqrt(share * (1 - share) / tries + square / (4 * tries * tries))
    low, high = ((middle + sign * spread) / (1 + square / tries) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)


def sign_test(won: int, lost: int) -> float:
    """How likely a difference of at least this size is, if both are equally good (exact, two-sided)."""
    number, less = won + lost, min(won, lost)
    return min(1.0, 2 * sum(math.comb(number, k) for k in range(less + 1)) / 2**number)


def tokens(row: dict) -> int:
    return row["tokens"]["prompt_tokens"] + row["tokens"]["completion_tokens"]


def number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def markdown(rows: list[dict], contenders: list[str], about: dict) -> str:
    text = ["# Exercism exercises, side by side", ""]
    text += [f"- {name}: {value}" for name, value in about.items()] + [""]
    kept = {name: [row for row in rows if row["contender"] == name] for name in contenders}
    kept = {name: tries for name, tries in kept.items() if tries}
    if not kept:
        return "\n".join([*text, "No try has been made yet.", ""])
    text += ["| contender | tries | passed | share (95 %) | file changed | tokens per success | seconds per success "
             "| tokens of a try | seconds of a try | out of time |", "|" + "---|" + "--:|" * 9]
    text += [line(name, tries) for name, tries in kept.items()]
    text += ["", "Tokens are those of prompts and replies together, counted in front of the server in the same way for everyone. "
             "Tokens and seconds per success are the sums over all tries, also of those that failed, divided by the passed tries; "
             "those of a try are medians.", ""]
    text += pairs(kept)
    text += ["", "## Who ran", ""]
    text += [f"- {name}: {tries[-1]['setup']['version']}" for name, tries in kept.items()]
    text += ["", "## Every exercise", "", "| exercise | " + " | ".join(kept) + " |", "|---|" + "---|" * len(kept)]
    for exercise in dict.fromkeys(row["exercise"] for row in rows):
        cells = (cell([row for row in tries if row["exercise"] == exercise]) for tries in kept.values())
        text.append(f"| {exercise} | " + " | ".join(cells) + " |")
    return "\n".join([*text, ""])


def line(name: str, tries: list[dict]) -> str:
    passed = sum(row["passed"] for row in tries)
    low, high = wilson(passed, len(tries))
    share = f"{passed / len(tries):.1%} ({low:.1%} to {high:.1%})"
    changed = sum(row["changed"] for row in tries)
    all_tokens, all_seconds = sum(map(tokens, tries)), sum(row["seconds"] for row in tries)
    each = [number(all_tokens / passed), number(all_seconds / passed)] if passed else ["–", "–"]
    median = [number(statistics.median(map(tokens, tries))), number(statistics.median(row["seconds"] for row in tries))]
    late = sum(row["late"] for row in tries)
    cells = [name, len(tries), passed, share, f"{changed} ({changed / len(tries):.0%})", *each, *median, late]
    return "| " + " | ".join(map(str, cells)) + " |"


def pairs(kept: dict[str, list[dict]]) -> list[str]:
    """The first contender beside each other one, on the tries that both have made."""
    (first, tries), *others = kept.items()
    by_key = {(row["round"], row["exercise"]): row["passed"] for row in tries}
    text = []
    for name, rows in others:
        both = [(by_key[key], row["passed"]) for row in rows if (key := (row["round"], row["exercise"])) in by_key]
        won, lost = sum(a and not b for a, b in both), sum(b and not a for a, b in both)
        text.append(f"- {first} beside {name}, {len(both)} tries of both: {won} passed only by {first}, {lost} only by {name} "
                    f"(sign test p = {sign_test(won, lost):.3f})")
    return text


def cell(tries: list[dict]) -> str:
    """`pass` or `fail` for each round; a try that left the files as they were is marked."""
    words = ["pass" if row["passed"] else "fail" if row["changed"] else "fail, unchanged" for row in tries]
    return "; ".join(words) or "–"
