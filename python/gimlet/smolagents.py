"""gimlet's sandbox for agents of smolagents: `CodeAgent(..., executor=gimlet.smolagents.Executor())`.

Only the code that the model wrote runs in the sandbox. Tools and managed agents are called in this process, as before.
"""

from __future__ import annotations

import ast
import queue
import re
import time
from typing import Any, Callable, Mapping, Sequence

from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor
from smolagents.utils import truncate_content

from ._agent import _Keep
from ._sandbox import ANSWER, PRELUDE
from ._wire import Answered, Asked, Closed, Connection, Message, ended

__all__ = ["Executor"]

_CALL = {
    "name": "_gimlet_call",
    "description": "Calls a function of the program.",
    "input": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "args": {"type": "array"}, "kwargs": {"type": "array"}},
        "required": ["name", "args", "kwargs"],
    },
}
_keep = _Keep()


class Executor(PythonExecutor):
    """Runs an agent's code in gimlet's sandbox: a process of its own without files, network or the host's objects.

    Args:
        imports: modules that code may import beside the usual ones; `-name` takes one away
        timeout: seconds that one piece of code may compute
        additional_functions: functions of this program that code may call beside the tools
        max_print_outputs_length: how much of what code prints the model reads
    """

    def __init__(
        self,
        imports: Sequence[str] = (),
        *,
        timeout: float = 30.0,
        additional_functions: Mapping[str, Callable[..., Any]] | None = None,
        max_print_outputs_length: int | None = None,
    ) -> None:
        self.imports = list(imports)
        self.timeout = timeout
        self.max_print_outputs_length = 50_000 if max_print_outputs_length is None else max_print_outputs_length
        #: What the code printed last, for smolagents.
        self.state: dict[str, Any] = {"_print_outputs": ""}
        self.static_tools: dict[str, Callable[..., Any]] = {"final_answer": _answer}
        self._functions = dict(additional_functions or {})
        self._variables: dict[str, Any] = {}
        self._objects: list[Any] = []
        self._connection: Connection | None = None
        self._session = ""
        self._known: set[str] = set()

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Makes tools functions of the code."""
        self.static_tools = {"final_answer": _answer, **tools, **self._functions}

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Makes values variables of the code. What JSON does not know stays here, and the code has a stand-in for it."""
        self._variables.update(variables)
        if self._session and variables:
            self._define(variables)

    def __call__(self, code_action: str) -> CodeOutput:
        """Runs code. What it raises is an InterpreterError, as with smolagents' own executor."""
        self._ready()
        self.state["_print_outputs"] = ""
        done = self._run(_with_value(code_action))
        logs = done["stdout"] + done["stderr"]
        self.state["_print_outputs"] = truncate_content(logs, max_length=self.max_print_outputs_length)
        end = done["end"]
        if not done["alive"]:
            self._forget()
        if end["end"] == "answer":
            return CodeOutput(output=self._in(end["value"]), logs=self.state["_print_outputs"], is_final_answer=True)
        if end["end"] == "done":
            return CodeOutput(output=self._value(end.get("value")), logs=self.state["_print_outputs"], is_final_answer=False)
        raise InterpreterError(_said(end, code_action))

    def cleanup(self) -> None:
        """Ends the sandbox, and with it all variables."""
        connection, session = self._connection, self._session
        self._forget()
        if connection is not None and session and connection.is_alive:
            connection.request("_gimlet/python/close", {"id": session}, lambda message: None)

    def __del__(self) -> None:
        if getattr(self, "_session", ""):
            self.cleanup()

    def _forget(self) -> None:
        self._session = ""
        self._known = set()

    def _ready(self) -> None:
        """Starts the sandbox, and defines the tools that it does not know yet."""
        if self._connection is None or not self._connection.is_alive:
            self._connection = _keep.connection()
            self._forget()
        prelude = ""
        if not self._session:
            begin = {"tools": [_CALL], "imports": self.imports, "timeout": self.timeout, "seed": time.time_ns() % 2**32}
            self._session = self._connection.call("_gimlet/python/open", begin)["id"]
            prelude = PRELUDE
        new = [name for name in self.static_tools if name not in self._known]
        for name in new:
            prelude += ANSWER if name == "final_answer" else f"{name} = _gimlet_tool({name!r})\n"
        self._known.update(new)
        if prelude:
            self._prepare(prelude)
            if PRELUDE in prelude and self._variables:
                self._define(self._variables)

    def _prepare(self, code: str) -> None:
        end = self._run(code)["end"]
        if end["end"] != "done":
            raise RuntimeError(_said(end, code))

    def _define(self, variables: Mapping[str, Any]) -> None:
        self._sent = dict(variables)
        self._prepare("\n".join(f"{name} = _gimlet_tool('_gimlet_variable')({name!r})" for name in variables))

    def _run(self, code: str) -> dict[str, Any]:
        assert self._connection is not None
        connection, session = self._connection, self._session
        messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        connection.route(session, messages.put)
        try:
            connection.request("_gimlet/python/run", {"id": session, "code": code}, messages.put)
            while True:
                message = messages.get()
                if isinstance(message, Asked):
                    connection.answer(message.id, {"value": self._perform(message.params["args"])})
                elif isinstance(message, Closed):
                    raise ended(message)
                elif isinstance(message, Answered):
                    if message.error:
                        raise message.error
                    return dict(message.result)
        except BaseException:
            # What was interrupted is in the middle of something, so it does not go on.
            self.cleanup()
            raise
        finally:
            connection.leave(session)

    def _perform(self, call: dict[str, Any]) -> dict[str, Any]:
        """Calls a function of this program for the code."""
        try:
            args = [self._in(arg) for arg in call["args"]]
            kwargs = {name: self._in(arg) for name, arg in call["kwargs"]}
            name = call["name"]
            if name == "_gimlet_variable":
                return {"value": self._out(self._sent[args[0]])}
            return {"value": self._out(self.static_tools[name](*args, **kwargs))}
        except Exception as error:
            return {"raised": type(error).__name__, "text": str(error)}

    def _value(self, shown: str | None) -> Any:
        """The value of the last expression, of which the program told how Python shows it."""
        if shown is None:
            return None
        try:
            return ast.literal_eval(shown)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
        fetched: list[Any] = []
        self.static_tools["_gimlet_value"] = fetched.append
        try:
            self._run("_gimlet_tool('_gimlet_value')(_)")
        finally:
            del self.static_tools["_gimlet_value"]
        return fetched[0] if fetched else shown

    def _out(self, value: Any) -> Any:
        """A value for the code."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float and value - value == 0:
            return value
        if type(value) is list:
            return [self._out(item) for item in value]
        if type(value) in (tuple, set, frozenset):
            return {"_gimlet": "tuple" if type(value) is tuple else "set", "items": [self._out(item) for item in value]}
        if type(value) is dict:
            if all(type(key) is str for key in value) and "_gimlet" not in value:
                return {key: self._out(item) for key, item in value.items()}
            return {"_gimlet": "dict", "items": [[self._out(key), self._out(item)] for key, item in value.items()]}
        if type(value) is complex:
            return {"_gimlet": "complex", "items": [value.real, value.imag]}
        if type(value) is bytes:
            return {"_gimlet": "bytes", "items": list(value)}
        if isinstance(value, str):
            return str(value)
        self._objects.append(value)
        return {"_gimlet": "object", "key": len(self._objects) - 1, "text": repr(value)[:1000]}

    def _in(self, value: Any) -> Any:
        """A value of the code."""
        if isinstance(value, list):
            return [self._in(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("_gimlet")
        if kind is None:
            return {key: self._in(item) for key, item in value.items()}
        if kind == "object":
            return self._objects[value["key"]]
        if kind == "text":
            return value["text"]
        items = [self._in(item) for item in value["items"]]
        made: dict[str, Callable[[list[Any]], Any]] = {
            "tuple": tuple, "set": set, "dict": dict, "bytes": bytes, "complex": lambda parts: complex(*parts)
        }
        return made[kind](items)


def _answer(answer: Any) -> Any:
    """The answer of an agent that has no function of its own for it."""
    return answer


def _with_value(code: str) -> str:
    """Code whose last line has a value: what is assigned there is looked at, as smolagents does."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return code  # the sandbox tells what is wrong
    last = body[-1] if body else None
    target: ast.expr | None = None
    if isinstance(last, ast.Assign) and len(last.targets) == 1:
        target = last.targets[0]
    elif isinstance(last, (ast.AugAssign, ast.AnnAssign)):
        target = last.target
    return f"{code}\n{target.id}" if isinstance(target, ast.Name) else code


def _said(end: dict[str, Any], code: str) -> str:
    """What went wrong, with the line of code."""
    if end["end"] != "raised":
        return str(end.get("message", "the code came to no end"))
    traceback = str(end["traceback"]).rstrip()
    said = traceback.splitlines()[-1] if traceback else end["kind"]
    numbers = re.findall(r'File "<cell[^"]*>", line (\d+)', traceback) or re.findall(r"line (\d+)", traceback)
    lines = code.splitlines()
    at = int(numbers[0]) - 1 if numbers else -1
    where = f" at line '{lines[at].strip()}'" if 0 <= at < len(lines) else ""
    # smolagents looks for its own words to advise on imports.
    said = re.sub(r"ImportError: import of '([^']*)' is not allowed", r"ImportError: Import of \1 is not allowed", said)
    return f"Code execution failed{where} due to: {said}"
