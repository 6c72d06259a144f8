"""Agents: what they are told, what they may use, and how they are run."""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeVar, overload

from ._result import Ask, Check, Result
from ._schema import schema_of
from ._tool import Tool, as_tool
from ._turn import AsyncStream, Stream, Turn
from ._wire import Connection
from .errors import UsageError
from .mcp import Server

T = TypeVar("T")

#: Answers a question: True or "once" for this call, "session" for all like it, False or a reason for no.
Approve = Callable[[Ask], Any]
#: Judges an answer: True or None if it is good, False or what is missing otherwise.
CheckFunction = Callable[[Any, Check], Any]

_LIMITS = ("model", "action", "temperature", "max_tokens", "max_steps", "step_budget", "timeout", "token_budget", "executor")


class Plan:
    """An agent with all it needs, as one run is told of it."""

    def __init__(self, lead: Agent, form: Any) -> None:
        self.form = form
        self.approve: Approve | None = lead.approve if callable(lead.approve) else None
        self.checks = list(lead.checks)
        self.tools: dict[str, Tool[..., Any]] = {}
        self.servers: dict[str, str] = {}
        self._tables: dict[str, Any] = {}
        self._mcp: dict[str, Any] = {}
        # An agent lives as long as its runs: the program behind it ends with it.
        self._lead = lead
        wishes: dict[str, Any] = {"events": True}
        if lead._is_plain():
            wishes.update({name: value for name in _LIMITS if (value := getattr(lead, name)) is not None})
            wishes["imports"] = list(lead.imports)
            if lead.plan:
                wishes["plan"] = 0 if lead.plan is True else lead.plan
        else:
            self._add(lead, lead.name or "lead")
            wishes["agent"] = lead.name or "lead"
            if lead.model is not None:
                wishes["model"] = lead.model
            wishes["config"] = {"agents": self._tables, "mcp": self._mcp}
        for name in ("api_base", "sandbox", "memory"):
            if getattr(lead, name) is not None:
                wishes[name] = getattr(lead, name)
        if lead.approve is not None and not callable(lead.approve):
            wishes["approve"] = lead.approve if isinstance(lead.approve, str) else "all" if lead.approve else "never"
        if lead.project_instructions is not None:
            wishes["instructions"] = lead.project_instructions
        if form is not None:
            wishes["output"] = schema_of(form)
        wishes["tools"] = [tool.spec() for tool in self.tools.values()]
        wishes["checks"] = len(self.checks)
        self.wishes = wishes

    def _add(self, agent: Agent, name: str) -> None:
        if name in self._tables:
            raise UsageError(f"two agents are called `{name}`", error="WRONG_USAGE")
        table = {name: value for name in _LIMITS if (value := getattr(agent, name)) is not None}
        table.update(description=agent.description, instructions=agent.instructions)
        if agent.imports:
            table["imports"] = list(agent.imports)
        if agent.plan is not None:
            table["plan"] = agent.plan
        self._tables[name] = table
        if agent.tools is not None:
            table["tools"] = [word for given in agent.tools for word in self._words(given)]
        mates = []
        for mate in agent.managed_agents:
            if not mate.name or not mate.description:
                raise UsageError("a managed agent needs a name and a description", error="WRONG_USAGE")
            mates.append(mate.name)
            self._add(mate, mate.name)
        table["agents"] = mates

    def _words(self, given: Any) -> Iterable[str]:
        """What an agent's table says of a tool."""
        if isinstance(given, str):
            return [given]
        if isinstance(given, Server):
            known = self._mcp.setdefault(given.name, given.table)
            if known != given.table:
                raise UsageError(f"two MCP servers are called `{given.name}`; give one a name", error="WRONG_USAGE")
            self.servers[given.prefix] = given.name
            return [f"{given.prefix}*"]
        tool = as_tool(given)
        known_tool = self.tools.setdefault(tool.name, tool)
        if known_tool.function is not tool.function and known_tool is not tool and not _same(known_tool, tool):
            raise UsageError(f"two tools are called `{tool.name}`; give one a name: @tool(name=...)", error="WRONG_USAGE")
        return [tool.name]

    def function_of(self, method: str, params: Mapping[str, Any]) -> Any:
        """The function behind a request of the program."""
        if method == "_gimlet/tool":
            return self.tools[params["name"]].function
        return self.checks[params["index"]] if method == "_gimlet/check" else self.approve


def _same(one: Tool[..., Any], other: Tool[..., Any]) -> bool:
    """Whether two are made of the same tool of smolagents."""
    inside = [getattr(tool.function, "__closure__", None) for tool in (one, other)]
    return bool(inside[0] and inside[1] and inside[0][0].cell_contents is inside[1][0].cell_contents)


class _Keep:
    """The program behind an agent. It is kept from run to run, and the MCP servers with it."""

    def __init__(self) -> None:
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """A program that knows the variables of this process as they are now."""
        kept = self._connection
        if kept is not None and kept.is_alive and (kept.is_busy or kept.environment == dict(os.environ)):
            return kept
        if kept is not None and kept.is_alive:
            kept.close()
        self._connection = Connection()
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.is_alive:
            connection.close()


class Agent:
    """An agent: a model, what it is told, and what it may use. It keeps nothing from run to run: `resume` goes on.

    Args:
        model: the model, such as `ollama_chat/qwen3:14b`; the best one that is there otherwise
        name: what its manager calls it
        description: what it is good for, for its manager
        instructions: what it is told beside the standing prompt
        tools: functions, tools of smolagents, MCP servers, and names of built-in tools such as `read_file` or `git_*`;
            all built-in tools otherwise
        managed_agents: agents that it may call
        action: `tools`, `code` or `guided`; what suits the model otherwise
        max_steps: how many steps it may take
        step_budget: how many steps it and the agents below it may take together
        max_tokens: tokens of one reply
        token_budget: tokens of the whole run
        timeout: seconds the run may take
        temperature: randomness of the replies
        plan: True to begin with a plan, a number to plan again after so many steps
        executor: where its code runs: `python`, `venv` (your CPython with its packages, jailed) or `docker`
        imports: modules its code may import beside the usual ones; `-name` takes one away
        approve: answers what the guard asks: a function, or a mode such as `"edits"`, `"all"` or `"never"`; without it the
            run is suspended
        checks: functions of answer and run that judge the answer; a text says what is missing
        root: the project's folder; the working directory otherwise
        api_base: address of the model server
        sandbox: what commands may change: `read-only`, `workspace-write`, `unrestricted` or `docker`
        memory: whether it may remember things about the project
        project_instructions: whether it reads the project's own instructions for agents
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        name: str | None = None,
        description: str = "",
        instructions: str = "",
        tools: Sequence[Any] | None = None,
        managed_agents: Sequence[Agent] = (),
        action: str | None = None,
        max_steps: int | None = None,
        step_budget: int | None = None,
        max_tokens: int | None = None,
        token_budget: int | None = None,
        timeout: float | None = None,
        temperature: float | None = None,
        plan: bool | int | None = None,
        executor: str | None = None,
        imports: Sequence[str] = (),
        approve: Approve | str | bool | None = None,
        checks: Sequence[CheckFunction] = (),
        root: str | os.PathLike[str] | None = None,
        api_base: str | None = None,
        sandbox: str | None = None,
        memory: bool | None = None,
        project_instructions: bool | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.description = description
        self.instructions = instructions
        self.tools = None if tools is None else [tool if isinstance(tool, (str, Server)) else as_tool(tool) for tool in tools]
        self.managed_agents = list(managed_agents)
        self.action = action
        self.max_steps = max_steps
        self.step_budget = step_budget
        self.max_tokens = max_tokens
        self.token_budget = token_budget
        self.timeout = timeout
        self.temperature = temperature
        self.plan = plan
        self.executor = executor
        self.imports = list(imports)
        self.approve = approve
        self.checks = list(checks)
        self.root = root
        self.api_base = api_base
        self.sandbox = sandbox
        self.memory = memory
        self.project_instructions = project_instructions
        self._keep = _Keep()
        weakref.finalize(self, _Keep.close, self._keep)

    def _is_plain(self) -> bool:
        """Whether the agent that everybody gets without a name is meant: its runs can be resumed on the command line."""
        return self.tools is None and not (self.managed_agents or self.instructions or self.name or self.step_budget)

    def __repr__(self) -> str:
        return f"<Agent {self.name or 'lead'} {self.model or 'best model'}>"

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program behind the agent, and the MCP servers with it. The next run starts it again."""
        self._keep.close()

    def _begin(self, plan: Plan, run: str | None) -> Turn[Any]:
        connection = self._keep.connection()
        root = os.path.abspath(self.root if self.root is not None else os.getcwd())
        begin: dict[str, Any] = {"cwd": root, "mcpServers": [], "_meta": {"gimlet": plan.wishes}}
        if run is None:
            session = connection.call("session/new", begin)["sessionId"]
        else:
            session = str(run)
            # The run goes on in the folder it was in, unless another one is named.
            plan.wishes["anywhere"] = self.root is None
            connection.call("session/resume", {**begin, "sessionId": session})
        return Turn(connection, plan, session)

    @overload
    def stream(self, task: str, *, output: type[T]) -> Stream[T]: ...
    @overload
    def stream(self, task: str, *, output: Any = None) -> Stream[Any]: ...
    def stream(self, task: str, *, output: Any = None) -> Stream[Any]:
        """Works on a task and gives every event as it happens. Leaving the loop stops the run."""
        return Stream(self._begin(Plan(self, output), None), task)

    @overload
    def run(self, task: str, *, output: type[T]) -> Result[T]: ...
    @overload
    def run(self, task: str, *, output: Any = None) -> Result[Any]: ...
    def run(self, task: str, *, output: Any = None) -> Result[Any]:
        """Works on a task to its end. With `output`, the answer is of that type."""
        return self.stream(task, output=output).result

    @overload
    def resume(self, run: str, task: str | None = None, *, output: type[T]) -> Result[T]: ...
    @overload
    def resume(self, run: str, task: str | None = None, *, output: Any = None) -> Result[Any]: ...
    def resume(self, run: str, task: str | None = None, *, output: Any = None) -> Result[Any]:
        """Goes on with a run, of this process or of an earlier one: with another task, or with what is left of it."""
        return Stream(self._begin(Plan(self, output), run), task).result

    @overload
    def astream(self, task: str, *, output: type[T]) -> AsyncStream[T]: ...
    @overload
    def astream(self, task: str, *, output: Any = None) -> AsyncStream[Any]: ...
    def astream(self, task: str, *, output: Any = None) -> AsyncStream[Any]:
        """`stream` for `async for`."""
        plan = Plan(self, output)
        return AsyncStream(lambda: self._begin(plan, None), task)

    @overload
    async def arun(self, task: str, *, output: type[T]) -> Result[T]: ...
    @overload
    async def arun(self, task: str, *, output: Any = None) -> Result[Any]: ...
    async def arun(self, task: str, *, output: Any = None) -> Result[Any]:
        """`run` for `await`. Cancelling the task stops the run."""
        stream = self.astream(task, output=output)
        async for _ in stream:
            pass
        return stream.result

    @overload
    async def aresume(self, run: str, task: str | None = None, *, output: type[T]) -> Result[T]: ...
    @overload
    async def aresume(self, run: str, task: str | None = None, *, output: Any = None) -> Result[Any]: ...
    async def aresume(self, run: str, task: str | None = None, *, output: Any = None) -> Result[Any]:
        """`resume` for `await`."""
        plan = Plan(self, output)
        stream: AsyncStream[Any] = AsyncStream(lambda: self._begin(plan, run), task)
        async for _ in stream:
            pass
        return stream.result


def run(task: str, model: str | None = None, *, output: Any = None, **options: Any) -> Result[Any]:
    """Works on one task: `print(gimlet.run("why does the test fail?"))`. The options are those of `Agent`."""
    with Agent(model, **options) as agent:
        return agent.run(task, output=output)
