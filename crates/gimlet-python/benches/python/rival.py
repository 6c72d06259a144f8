"""Runs programs in this Python, or in smolagents' interpreter on it, and tells the processor time each took.

One program a line on standard input, as a JSON string; one number of seconds a line on standard output.
"""

import json
import sys
import time


def plainly(code):
    compiled = compile(code, "program", "exec")
    began = time.process_time()
    exec(compiled, {"__name__": "__main__"})
    return time.process_time() - began


def with_smolagents(code):
    from smolagents.local_python_executor import LocalPythonExecutor

    try:
        executor = LocalPythonExecutor([], timeout_seconds=None)
    except TypeError:
        executor = LocalPythonExecutor([])
    executor.send_tools({})
    began = time.process_time()
    executor(code)
    return time.process_time() - began


run = with_smolagents if sys.argv[1:] == ["smolagents"] else plainly
if run is with_smolagents:
    import smolagents

    name = f"smolagents {smolagents.__version__} on CPython {sys.version.split()[0]}"
else:
    name = f"CPython {sys.version.split()[0]} ({sys.executable})"
print(name, flush=True)
for line in sys.stdin:
    print(run(json.loads(line)), flush=True)
