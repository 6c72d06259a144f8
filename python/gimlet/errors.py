"""What can go wrong, as exceptions with the fields that the program's own errors have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._tool import ToolError

if TYPE_CHECKING:
    from ._result import Ask, Event

__all__ = ["GimletError", "Interrupted", "OutputError", "ProgramEnded", "RunFailed", "Suspended", "ToolError", "UsageError"]


class GimletError(Exception):
    """The reason for all errors of this package."""

    #: A stable word, such as `MODEL_UNREACHABLE`.
    error: str
    #: What happened.
    message: str
    #: What you can do about it.
    hint: str | None
    #: The run, where there is one.
    run: str | None
    #: The events of the turn up to here.
    events: list[Event]

    def __init__(
        self, message: str, *, error: str = "FAILED", hint: str | None = None, run: str | None = None
    ) -> None:
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.error = error
        self.message = message
        self.hint = hint
        self.run = run
        self.events = []


class UsageError(GimletError, ValueError):
    """The call or the configuration makes no sense: nothing was run."""


class RunFailed(GimletError):
    """The run broke, for example because no model answers. `resume` carries it on."""


class ProgramEnded(GimletError):
    """The gimlet program ended or could not be started. Its last words are in the message."""


class Suspended(GimletError):
    """A question waits for an answer, and nobody here can be asked. `resume` asks it again."""

    #: The question.
    ask: Ask | None

    def __init__(self, message: str, *, run: str | None = None, ask: Ask | None = None) -> None:
        super().__init__(message, error="APPROVAL_REQUIRED", run=run, hint="give the agent `approve=`, or run: gimlet approve")
        self.ask = ask


class OutputError(GimletError):
    """The answer does not have the form that was asked for."""

    #: The answer as text.
    answer: str

    def __init__(self, message: str, *, answer: str, run: str | None = None) -> None:
        super().__init__(message, error="OUTPUT_MISSING", run=run)
        self.answer = answer


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the run, and nothing else. `resume(error.run)` carries it on."""

    run: str | None

    def __init__(self, run: str | None = None) -> None:
        super().__init__(f"the run was stopped; to carry it on: resume({run!r})" if run else "the run was stopped")
        self.run = run


def error_of(code: int, message: str, data: Any) -> GimletError:
    """An error that the program answered with."""
    fields = data if isinstance(data, dict) else {}
    kind = UsageError if code == -32602 or fields.get("error") == "WRONG_USAGE" else RunFailed
    return kind(
        fields.get("message", message), error=fields.get("error", "FAILED"), hint=fields.get("hint"), run=fields.get("run")
    )
