"""Tests run the real program. `GIMLET_BIN` names it; the debug build of this repository is used otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

HERE = Path(__file__).resolve().parent
os.environ.setdefault("GIMLET_BIN", str(HERE.parents[1] / "target" / "debug" / "gimlet"))
sys.path.insert(0, str(HERE.parent))
# A shell starts what runs in its background deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

Script = Callable[[str], str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a home of its own, in which the test runs."""
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    monkeypatch.setenv("GIMLET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PHOENIX_ENABLED", "false")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def script(project: Path, tmp_path: Path) -> Script:
    """Writes what a model says, and returns the model's name."""
    made = []

    def write(text: str) -> str:
        path = tmp_path / f"script{len(made)}.toml"
        made.append(path)
        path.write_text('order = "turns"\n' + text)
        return f"scripted/{path}"

    return write
