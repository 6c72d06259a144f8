"""Gimlet: agents on local models, with a guard around every tool, a real sandbox for code and durable runs.

    import gimlet
    print(gimlet.run("why does the test fail?"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import mcp
from ._agent import Agent, run
from ._result import Ask, Check, Event, Result, Usage
from ._tool import Tool, ToolError, tool
from ._turn import AsyncStream, Stream
from .errors import GimletError, Interrupted, OutputError, ProgramEnded, RunFailed, Suspended, UsageError

if TYPE_CHECKING:
    import gimlet.smolagents as smolagents

__version__ = "0.1.0"
__all__ = [
    "Agent", "Ask", "AsyncStream", "Check", "Event", "GimletError", "Interrupted", "OutputError", "ProgramEnded", "Result",
    "RunFailed", "Stream", "Suspended", "Tool", "ToolError", "Usage", "UsageError", "mcp", "run", "smolagents", "tool",
]


def __getattr__(name: str) -> Any:
    if name == "smolagents":  # only whoever uses it pays for it
        import importlib

        return importlib.import_module(".smolagents", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
