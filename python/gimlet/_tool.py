"""Functions as tools. A tool's schema comes from the function's types and docstring."""

from __future__ import annotations

from typing import Any, Callable, Generic, ParamSpec, TypeVar, overload

from ._schema import Schema, docstring_of, from_json, parameters_of, returned_by, to_json

P = ParamSpec("P")
R = TypeVar("R")

# Types as smolagents' tools name them. An image or a sound cannot be sent to the model as JSON.
_SMOL_TYPES = {"any": None, "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
               "array": "array", "object": "object", "null": "null"}


class ToolError(Exception):
    """Raise it in a tool to tell the model of a failure by a stable word, such as `MEMORY_FULL`.

    Any other exception is told as `TOOL_EXCEPTION` with the exception's own words.
    """

    def __init__(self, error: str, message: str, **context: Any) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.context = context


class Tool(Generic[P, R]):
    """A function that models can call. It is called in this program; calling the object calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        reads_only: bool = False,
        timeout: float | None = None,
        input: Schema | None = None,
        output: Schema | None = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "") or type(function).__name__
        if not self.name.isidentifier():
            raise ValueError(f"`{self.name}` cannot be the name of a tool; give one: @tool(name=...)")
        self.description = description if description is not None else docstring_of(function)[0]
        if not self.description:
            raise ValueError(f"the tool `{self.name}` needs a docstring: the model reads it to know what the tool does")
        self.reads_only = reads_only
        self.timeout = timeout
        self._forms: dict[str, Any] = {}
        if input is None:
            input, self._forms = parameters_of(function)
            output = output or returned_by(function)
        self.input = input
        self.output = output
        for attribute in ("__doc__", "__name__", "__module__"):
            if hasattr(function, attribute):
                setattr(self, attribute, getattr(function, attribute))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<gimlet tool {self.name}>"

    def invoke(self, args: dict[str, Any]) -> Any:
        """Calls the function with arguments from JSON. What it returns may be awaitable."""
        forms = self._forms
        made = {name: from_json(value, forms[name]) if name in forms else value for name, value in args.items()}
        return self.function(**made)  # type: ignore[call-arg]

    def spec(self) -> dict[str, Any]:
        """The tool as the program is told of it."""
        spec: dict[str, Any] = {"name": self.name, "description": self.description, "input": self.input}
        if self.output is not None:
            spec["output"] = self.output
        if self.reads_only:
            spec["reads_only"] = True
        if self.timeout is not None:
            spec["timeout"] = self.timeout
        return spec


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, reads_only: bool = False, timeout: float | None = None
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    reads_only: bool = False,
    timeout: float | None = None,
) -> Any:
    """Makes a function a tool. Docstring and types become its schema; it runs in this process, behind the guard.

    Args:
        function: the function, when the decorator is used without parentheses
        name: what models call it; the function's name otherwise
        description: what models read about it; the docstring otherwise
        reads_only: it changes nothing, so nobody is asked before it is called
        timeout: how many seconds a call may take; 300 otherwise
    """

    def decorate(function: Callable[..., Any]) -> Tool[..., Any]:
        return Tool(function, name=name, description=description, reads_only=reads_only, timeout=timeout)

    return decorate if function is None else decorate(function)


def as_tool(given: Any) -> Tool[..., Any]:
    """A tool from what people have: a tool of this package, one of smolagents, or a plain function."""
    if isinstance(given, Tool):
        return given
    if all(hasattr(given, attribute) for attribute in ("name", "description", "inputs", "forward")):
        return _from_smolagents(given)
    if callable(given):
        return Tool(given)
    raise TypeError(f"{given!r} is not a tool: give a function, or the name of a built-in tool")


def _from_smolagents(given: Any) -> Tool[..., Any]:
    properties: dict[str, Any] = {}
    required = []
    for name, about in given.inputs.items():
        kinds = about["type"] if isinstance(about["type"], list) else [about["type"]]
        unknown = [kind for kind in kinds if kind not in _SMOL_TYPES]
        if unknown:
            raise TypeError(f"the tool `{given.name}` takes a value of type {unknown[0]}, which no model can write")
        types = [kind for kind in (_SMOL_TYPES[kind] for kind in kinds) if kind is not None]
        if about.get("nullable") and types and "null" not in types:
            types.append("null")
        properties[name] = {"description": about.get("description", "")}
        if types:
            properties[name]["type"] = types[0] if len(types) == 1 else types
        if not about.get("nullable"):
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def call(**args: Any) -> Any:
        return given(**args)

    return Tool(call, name=given.name, description=given.description, input=schema)


def failure_of(error: BaseException) -> dict[str, Any]:
    """An exception of a tool as the model is told of it."""
    if isinstance(error, ToolError):
        return {"error": error.error, "message": error.message, "context": to_json(error.context)}
    return {"error": "TOOL_EXCEPTION", "message": f"{type(error).__name__}: {error}"}
