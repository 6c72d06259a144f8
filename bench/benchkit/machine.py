"""What the numbers were measured on and with; no names of hosts, people or folders."""

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path


def describe() -> dict:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _field("/proc/cpuinfo", "model name"),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1024 / 1024),
        "kernel": f"{platform.system()} {plain_version(platform.release())}",
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def plain_version(release: str) -> str:
    """A kernel's version without what its builder appended, which names their machines and not its speed."""
    return re.match(r"[0-9.]*", release)[0].rstrip(".") or "unknown"


def available_kb() -> int:
    return int(_field("/proc/meminfo", "MemAvailable").split()[0])


def now() -> datetime:
    return datetime.now(timezone.utc)


def revision(root: Path) -> str:
    """The commit that is measured, marked when files differ from it that no result is written to."""

    def git(*argv: str) -> str:
        return subprocess.run(["git", *argv], cwd=root, capture_output=True, text=True).stdout.strip()

    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{commit}-dirty" if git("status", "--porcelain", "--", ".", ":!bench/results", ":!README.md") else commit


def version(argv: list[str]) -> str:
    """The first word with a number in front of what a program says its version is."""
    try:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent"}
        said = subprocess.run(argv, capture_output=True, text=True, env=environment).stdout
    except OSError:
        return "absent"
    return next((word for word in said.split() if word[0].isdigit()), "unknown")


def _field(file: str, name: str) -> str:
    with open(file) as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return "unknown 0"
