"""Measures the package: the import, a tool call into Python and back, and smolagents with its own executor and with ours.

usage: GIMLET_BIN=target/release/gimlet python python/bench/bench.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
CALLS = 200
COMPUTE = "total = 0\nfor i in range(20000):\n    total = (total * 31 + i) % 1000003\ntotal"


def import_ms() -> float:
    """What `import gimlet` costs: processor time, the best of ten, since a busy machine only adds."""
    code = "import time; begun = time.process_time(); import gimlet; print(time.process_time() - begun)"

    def seconds() -> float:
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(HERE)}, check=True, capture_output=True)
        return float(done.stdout)

    return 1e3 * min(seconds() for _ in range(10))


def tool_call_ms(folder: Path) -> float:
    """A call from code in the sandbox into this process and back: validated, judged, logged before and after."""
    import gimlet

    script = folder / "script.toml"
    code = f"for i in range({CALLS}):\n    tick(n=i)\nfinal_answer(1)"
    script.write_text(f'[[reply]]\ntext = """```python\n{code}\n```"""\n')
    times: list[float] = []

    @gimlet.tool(reads_only=True)
    def tick(n: int) -> int:
        """Ticks."""
        times.append(time.perf_counter())
        return n

    gimlet.Agent(f"scripted/{script}", action="code", tools=[tick], root=folder).run("tick")
    return 1e3 * statistics.median(later - earlier for earlier, later in zip(times, times[1:]))


def smolagents_ratio() -> str:
    try:
        from smolagents.local_python_executor import LocalPythonExecutor
    except ImportError:
        return "smolagents is not installed"
    from gimlet.smolagents import Executor

    def seconds(executor: object, code: str) -> float:
        executor.send_tools({})  # type: ignore[attr-defined]
        executor("1")  # type: ignore[operator]
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            executor(code)  # type: ignore[operator]
            took.append(time.perf_counter() - begun)
        return statistics.median(took)

    lines = []
    for name, code in [("a loop of 20,000", COMPUTE), ("one line", "1 + 1")]:
        own, ours = seconds(LocalPythonExecutor([]), code), seconds(Executor(), code)
        lines.append(f"{name}: {own * 1e3:.2f} ms with smolagents' executor, {ours * 1e3:.2f} ms with ours: {own / ours:.1f} times as fast")
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GIMLET_HOME"] = f"{folder}/home"
        print(f"import gimlet: {import_ms():.1f} ms")
        print(f"a tool call into Python and back: {tool_call_ms(Path(folder)):.3f} ms")
        print(smolagents_ratio())


if __name__ == "__main__":
    main()
