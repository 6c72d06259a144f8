"""Runs programs and tells what they took: time, processor time, memory. Linux only, for it reads /proc."""

import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

PATIENCE = 600.0
"""Seconds after which a program is killed; a run that hangs must not hang the bench."""
LINGER = 2.0
"""Seconds that children of an ended program may take to end too."""
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Command:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    cwd: Path = Path("/")


@dataclass(frozen=True)
class Run:
    """One program, from its start to its end."""

    wall: float
    cpu: float
    code: int
    output: str


@dataclass(frozen=True)
class Fleet:
    """Many programs, started at once."""

    wall: float
    cpu: float
    runs: list[Run]


class Started:
    """A program under way. Its output goes to a file, so that nobody has to read while the clock runs."""

    def __init__(self, command: Command):
        self.output = tempfile.TemporaryFile()
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command.argv,
            env=command.env,
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self) -> Run:
        timer = threading.Timer(PATIENCE, self._kill)
        timer.daemon = True
        timer.start()
        # wait4 and not Popen.wait: it tells the processor time of this program and of what it waited for itself.
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.began
        timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.output.seek(0)
        text = self.output.read().decode(errors="replace")
        self.output.close()
        return Run(wall, usage.ru_utime + usage.ru_stime, self.process.returncode, text)

    def _kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def adopt_orphans() -> None:
    """Makes this process the parent of every child that a program leaves behind, so that its processor time is not lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt what programs leave behind")


def run(command: Command) -> Run:
    before = set(_children(os.getpid()))
    ended = Started(command).wait()
    return replace(ended, cpu=ended.cpu + _orphans_cpu(before))


def run_together(commands: list[Command]) -> Fleet:
    before = set(_children(os.getpid()))
    began = time.perf_counter()
    started = [Started(command) for command in commands]
    runs = [one.wait() for one in started]
    wall = time.perf_counter() - began
    return Fleet(wall, sum(one.cpu for one in runs) + _orphans_cpu(before), runs)


def _orphans_cpu(before: set[int]) -> float:
    """Waits for what ended programs left behind, ends what lingers, and tells the processor time it took."""
    cpu, patience = 0.0, time.monotonic() + LINGER
    while left := [pid for pid in _children(os.getpid()) if pid not in before]:
        for pid in left:
            if time.monotonic() > patience:
                os.kill(pid, signal.SIGKILL)
            ended, _, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                cpu += usage.ru_utime + usage.ru_stime
        time.sleep(0.001)
    return cpu


class Memory:
    """Samples, while its block runs, the memory of every program started in it.

    It is the sum of the proportional sets of the programs and all their children: pages that several share count once.
    Sampling takes time of its own, so rounds that measure memory do not measure time.
    """

    def __init__(self, pause: float):
        self.pause = pause
        self.samples: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "Memory":
        self._before = set(_children(os.getpid()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.is_set():
            roots = [pid for pid in _children(os.getpid()) if pid not in self._before and not _is_this_program(pid)]
            together = sum(_proportional_kb(pid) for pid in _with_descendants(roots))
            if together:
                self.samples.append((time.time(), together))
            if self.pause:
                self._over.wait(self.pause)

    def peak_kb(self) -> int:
        return max((kb for _, kb in self.samples), default=0)

    def median_kb_between(self, first: float, last: float) -> float | None:
        """What was in use between two moments; the nearest sample before where none fell between them."""
        inside = sorted(kb for at, kb in self.samples if first <= at <= last)
        if inside:
            return inside[len(inside) // 2]
        before = [kb for at, kb in self.samples if at <= last]
        return before[-1] if before else None


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found.extend(map(int, file.read().split()))
    except OSError:
        pass  # It ended meanwhile.
    return found


def _is_this_program(pid: int) -> bool:
    """Whether a child has yet to become its program: until then its memory is ours."""
    return _command_line(pid) == _command_line(os.getpid())


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""  # It ended meanwhile.


def _with_descendants(roots: list[int]) -> list[int]:
    found, waiting = [], list(roots)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting.extend(_children(pid))
    return found


def _proportional_kb(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except OSError:
        pass  # It ended meanwhile.
    return 0
