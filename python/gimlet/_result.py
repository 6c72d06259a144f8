"""What a run gives back: events while it goes on, and a result at its end."""

from __future__ import annotations

from typing import Any, Generic, Iterator, Mapping, TypeVar

from ._schema import from_json
from .errors import OutputError

T = TypeVar("T", covariant=True)


class Event(Mapping[str, Any]):
    """One event of a run, as it is in the log. Its fields are attributes and items: `event.text`, `event["text"]`."""

    __slots__ = ("data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def type(self) -> str:
        """What happened, such as `tool.finished`."""
        return str(self.data["type"])

    @property
    def path(self) -> str:
        """Which agent it happened to: empty for the one that leads, else such as `perceptual:call_1_0`."""
        return str(self.data.get("path", ""))

    @property
    def run(self) -> str:
        return str(self.data["run"])

    @property
    def seq(self) -> int:
        return int(self.data["seq"])

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(f"an event of type {self.data.get('type')!r} has no field {name!r}") from None

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        where = f" {self.path}" if self.path else ""
        return f"<{self.type}{where} #{self.seq}>"


class Usage:
    """Tokens that models were paid for."""

    __slots__ = ("input", "output", "cached", "reasoning")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.input = int(data.get("input") or 0)
        self.output = int(data.get("output") or 0)
        self.cached = int(data.get("cached") or 0)
        self.reasoning = int(data.get("reasoning") or 0)

    @property
    def total(self) -> int:
        return self.input + self.output

    def __repr__(self) -> str:
        return f"Usage(input={self.input}, output={self.output}, cached={self.cached}, reasoning={self.reasoning})"


class Ask:
    """A question of the guard: may this call be made?"""

    __slots__ = ("id", "tool", "server", "name", "args", "reason", "effects", "preview", "agent", "data")

    def __init__(self, data: dict[str, Any], servers: Mapping[str, str]) -> None:
        #: Names the question; `gimlet approve ID` answers it, too.
        self.id: str = data["id"]
        #: The whole name of the tool; `server__tool` for one of an MCP server.
        self.name: str = data["tool"]
        #: The MCP server that the tool belongs to.
        self.server: str | None = next((name for prefix, name in servers.items() if self.name.startswith(prefix)), None)
        prefix = next((prefix for prefix, name in servers.items() if name == self.server), "")
        #: The tool by its own name.
        self.tool: str = self.name.removeprefix(prefix)
        self.args: dict[str, Any] = data["args"]
        #: Why it must be asked.
        self.reason: str = data["reason"]
        #: What the call would do.
        self.effects: list[dict[str, Any]] = data["effects"]
        #: What to look at, such as a diff.
        self.preview: str | None = data.get("preview")
        #: Who asks: empty for the agent that leads.
        self.agent: str = data.get("asker", "")
        self.data = data

    def __repr__(self) -> str:
        return f"<ask {self.name}({self.args}): {self.reason}>"


class Result(Generic[T]):
    """How a run ended. As text it is the answer."""

    def __init__(self, run: str, finished: Mapping[str, Any], events: list[Event], form: Any) -> None:
        #: The run; `resume` and `gimlet runs show` know it.
        self.run = run
        #: The answer as text.
        self.answer: str = finished["answer"]
        #: `answered`, or the limit that ended the run: `max_steps`, `timeout`, `token_budget`, `step_budget`, `failed`.
        self.state: str = finished["state"]
        #: Steps taken by the agent that leads.
        self.steps: int = finished["steps"]
        self.usage = Usage(finished["usage"])
        self.seconds: float = finished["seconds"]
        #: What the reader of the answer should know, such as a check that was not met.
        self.notes: list[str] = list(finished.get("notes", []))
        #: Every event of this turn.
        self.events = events
        self._value = finished.get("value")
        self._form = form

    @property
    def output(self) -> T:
        """The answer as a value: of the type that was asked for, or as the model gave it. An answer without that form is an OutputError."""
        value: Any = self.answer if self._value is None else self._value
        if self._form is None:
            return value  # type: ignore[no-any-return]
        try:
            return from_json(value, self._form)  # type: ignore[no-any-return]
        except (ValueError, TypeError) as error:
            raise OutputError(f"the answer has not the form that was asked for: {error}", answer=self.answer, run=self.run) from error

    def __str__(self) -> str:
        return self.answer

    def __repr__(self) -> str:
        return f"<Result {self.run} {self.state}: {self.answer[:60]!r}>"

    def _repr_markdown_(self) -> str:
        """How a notebook shows it."""
        return self.answer


class Check:
    """What a check of the answer may know of the run."""

    __slots__ = ("task", "calls", "run")

    def __init__(self, data: Mapping[str, Any]) -> None:
        #: What was to be done.
        self.task: str = data["task"]
        #: Names of the tools that were called, in order.
        self.calls: list[str] = list(data["calls"])
        #: The run's id.
        self.run: str = data["sessionId"]
