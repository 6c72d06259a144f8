"""An instrumented coding agent: it fixes a project behind the guard, and every call is measured.

usage: python coding_agent.py TASK [MODEL]
"""

from __future__ import annotations

import sys
from collections import Counter

from gimlet import Agent, Ask, Check, Result


def approve(ask: Ask) -> bool | str:
    """Shows what would be done, and asks. Without a person nothing is done."""
    print(f"\n{ask.name}: {ask.reason}\n{ask.preview or ask.args}", file=sys.stderr)
    if not sys.stdin.isatty():
        return "Nobody is here to agree."
    said = input("agree? [y/N, or what to do instead] ").strip()
    return True if said.lower() in ("y", "yes") else said or False


def ran_the_tests(answer: str, run: Check) -> bool:
    """Run the tests after the change, before you answer."""
    changed = {"apply_patch", "edit_file"}.intersection(run.calls)
    return not changed or "run_tests" in run.calls


def coding_agent(model: str | None = None, approve: object = approve) -> Agent:
    return Agent(model, action="tools", tools=["read_file", "list_files", "rg_search", "edit_file", "run_tests", "git_*"],
                 max_steps=25, timeout=600, approve=approve, checks=[ran_the_tests])  # type: ignore[arg-type]


def report(result: Result[str]) -> str:
    """What was done, counted from the events of the run."""
    calls = [event for event in result.events if event.type == "tool.finished"]
    lines = [f"{name}: {count} calls" for name, count in Counter(call.tool for call in calls).most_common()]
    failed = [call for call in calls if not call.ok]
    lines.append(f"{len(failed)} of {len(calls)} calls failed, {sum(call.seconds for call in calls):.1f} s in tools")
    lines.append(f"{result.steps} steps, {result.usage.total} tokens, run {result.run}")
    return "\n".join(lines)


if __name__ == "__main__":
    result = coding_agent(*sys.argv[2:3]).run(sys.argv[1])
    print(result)
    print(report(result), file=sys.stderr)
