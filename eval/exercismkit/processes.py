"""Runs the programs of a try: they have a time limit, write nothing outside of their folders and die with this process."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """In the child, before it becomes its program: a killed parent leaves nobody behind."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def has_bubblewrap() -> bool:
    return shutil.which("bwrap") is not None


def confined(argv: list, writable: list[pathlib.Path], network: bool, readable: pathlib.Path | None = None) -> list[str]:
    """The command in a jail that reads the machine and writes only these folders."""
    jail = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    # Shown again, where they lie below the folder that was just hidden.
    if readable is not None:
        jail += ["--ro-bind", str(readable), str(readable)]
    for folder in writable:
        jail += ["--bind", str(folder), str(folder)]
    jail += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
    if not network:
        jail.append("--unshare-net")
    return [*jail, *map(str, argv)]


def run(argv: list, folder: pathlib.Path, log: pathlib.Path, seconds: float, env: dict | None = None) -> tuple[int | None, float]:
    """The exit code, none if the time was up, and the seconds it took. What it prints goes to the log."""
    begun = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen([str(word) for word in argv], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=env, start_new_session=True, preexec_fn=die_with_parent)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            # Also what it left running, and also when this process is interrupted.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    return code, time.monotonic() - begun
