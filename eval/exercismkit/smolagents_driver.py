"""One exercise through an agent of smolagents, with the tools of eval/smolagents_run.py.

usage: smolagents_driver.py code|tools ADDRESS MODEL SECONDS REPO TASK
"""

import pathlib
import sys
import time
import types

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import smolagents_run  # noqa: E402

MAX_STEPS = 25


def main() -> int:
    kind, address, model, seconds, repo, task = sys.argv[1:]
    options = types.SimpleNamespace(model=model, api_base=address, temperature=0.1, max_tokens=2048, tool_choice="auto")
    order = {"task": task, "max_steps": MAX_STEPS, "timeout": float(seconds)}
    begun = time.monotonic()
    told = smolagents_run.attempt(options, kind, order, pathlib.Path(repo))
    print(f"{told['ended']} after {told['steps']} steps and {time.monotonic() - begun:.0f} s: {told.get('error') or ''}")
    print(told["answer"])
    return 0 if told["ended"] == "answered" else 1


sys.exit(main())
