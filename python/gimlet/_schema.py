"""Python types and docstrings as JSON Schema, and JSON values as values of those types.

This file needs no other: the runner of script tools executes it without the rest of the package.
"""

from __future__ import annotations

import enum
import types
import typing
from collections import abc
from typing import Any, Callable

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    frozenset: {"type": "array", "uniqueItems": True},
    dict: {"type": "object"},
}
_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_MAPS = (dict, abc.Mapping, abc.MutableMapping)
# Types whose text is their JSON form, by module and name: importing them here would cost every program the time.
_TEXTS = {
    ("datetime", "datetime"): "date-time",
    ("datetime", "date"): "date",
    ("datetime", "time"): "time",
    ("uuid", "UUID"): "uuid",
    ("decimal", "Decimal"): None,
    ("pathlib", "Path"): None,
    ("pathlib", "PurePath"): None,
}


def _text_form(form: Any) -> tuple[bool, str | None]:
    key = (getattr(form, "__module__", "").removesuffix("._local"), getattr(form, "__name__", ""))
    return key in _TEXTS, _TEXTS.get(key)


def _is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _is_class(form: Any, attribute: str) -> bool:
    return isinstance(form, type) and hasattr(form, attribute)


def schema_of(form: Any, _above: tuple[Any, ...] = ()) -> Schema:
    """The JSON schema of a type. A type that has none is a TypeError."""
    try:
        if form in _PLAIN:
            return dict(_PLAIN[form])
    except TypeError:  # not hashable
        pass
    if isinstance(form, dict):  # a schema already
        return form
    if any(form is other for other in _above):
        raise TypeError(f"{_named(form)} contains itself, and such a type has no schema here")
    above = (*_above, form)
    origin, args = typing.get_origin(form), typing.get_args(form)
    if origin is typing.Annotated:
        words = [word for word in args[1:] if isinstance(word, str)]
        schema = schema_of(args[0], _above)
        return {**schema, "description": " ".join(words)} if words else schema
    if origin is typing.Literal:
        return {"enum": list(args)}
    if _is_union(origin):
        return {"anyOf": [schema_of(arg, above) for arg in args]}
    if origin in _LISTS:
        return {"type": "array", "items": schema_of(args[0], above)}
    if origin in _SETS:
        return {"type": "array", "items": schema_of(args[0], above), "uniqueItems": True}
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": schema_of(args[0], above)}
        parts = [schema_of(arg, above) for arg in args]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    if origin in _MAPS:
        if args[0] not in (str, Any):
            raise TypeError(f"keys of {_named(form)} must be str")
        return {"type": "object", "additionalProperties": schema_of(args[1], above)}
    if isinstance(form, typing.TypeVar):
        return {}
    for attribute in ("__supertype__", "__value__"):  # NewType, and aliases written with `type`
        if hasattr(form, attribute) and not isinstance(form, type):
            return schema_of(getattr(form, attribute), above)
    is_text, text_format = _text_form(form)
    if is_text:
        return {"type": "string", "format": text_format} if text_format else {"type": "string"}
    if isinstance(form, type) and issubclass(form, enum.Enum):
        return {"enum": [member.value for member in form]}
    if _is_class(form, "model_json_schema"):  # pydantic
        schema = form.model_json_schema()
        return dict(schema)
    fields = _fields(form)
    if fields is not None:
        properties = {name: schema_of(kind, above) for name, (kind, _) in fields.items()}
        needed = [name for name, (_, required) in fields.items() if required]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    raise TypeError(f"{_named(form)} has no JSON schema; use a type such as str, int, list[str] or a dataclass")


def _fields(form: Any) -> dict[str, tuple[Any, bool]] | None:
    """The fields of a TypedDict, a dataclass or a named tuple: their types, and whether they must be there."""
    if _is_class(form, "__required_keys__") and issubclass(form, dict):
        return {name: (kind, name in form.__required_keys__) for name, kind in _hints(form).items()}
    if _is_class(form, "__dataclass_fields__"):
        import dataclasses

        hints = _hints(form)
        missing = dataclasses.MISSING
        return {
            field.name: (hints[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(form)
            if field.init
        }
    if _is_class(form, "_fields") and issubclass(form, tuple):
        return {name: (kind, name not in form._field_defaults) for name, kind in _hints(form).items()}
    return None


def _hints(form: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(form, include_extras=True)
    wrappers = (getattr(typing, "Required", None), getattr(typing, "NotRequired", None))
    return {name: typing.get_args(kind)[0] if typing.get_origin(kind) in wrappers else kind for name, kind in hints.items()}


def _named(form: Any) -> str:
    return form.__name__ if isinstance(form, type) else repr(form)


def from_json(value: Any, form: Any) -> Any:
    """A JSON value as a value of a type. What does not fit is a ValueError."""
    if form in (Any, object) or isinstance(form, (dict, typing.TypeVar)):
        return value
    if form is None or form is type(None):
        return _expect(value, value is None, form)
    origin, args = typing.get_origin(form), typing.get_args(form)
    if origin is typing.Annotated:
        return from_json(value, args[0])
    if origin is typing.Literal:
        return _expect(value, value in args, form)
    if _is_union(origin):
        return _first_fit(value, args, form)
    kind = origin or form
    if kind in _LISTS:
        items = _expect(value, isinstance(value, list), form)
        return [from_json(item, args[0]) for item in items] if args else items
    if kind in _SETS:
        items = _expect(value, isinstance(value, list), form)
        made = frozenset if kind is frozenset else set
        return made(from_json(item, args[0]) if args else item for item in items)
    if kind is tuple:
        items = _expect(value, isinstance(value, list), form)
        if not args:
            return tuple(items)
        forms = [args[0]] * len(items) if len(args) == 2 and args[1] is Ellipsis else list(args)
        _expect(value, len(forms) == len(items), form)
        return tuple(from_json(item, part) for item, part in zip(items, forms))
    if kind in _MAPS:
        pairs = _expect(value, isinstance(value, dict), form)
        return {key: from_json(item, args[1]) for key, item in pairs.items()} if args else pairs
    for attribute in ("__supertype__", "__value__"):
        if hasattr(form, attribute) and not isinstance(form, type):
            return from_json(value, getattr(form, attribute))
    if form is float:
        return float(_expect(value, isinstance(value, (int, float)) and not isinstance(value, bool), form))
    if form is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return _expect(value, isinstance(value, int) and not isinstance(value, bool), form)
    if form in (str, bool):
        return _expect(value, isinstance(value, form), form)
    return _made(value, form)


def _made(value: Any, form: Any) -> Any:
    """A value of a class."""
    if _text_form(form)[0]:
        text = _expect(value, isinstance(value, str), form)
        return form.fromisoformat(text) if hasattr(form, "fromisoformat") else form(text)
    if isinstance(form, type) and issubclass(form, enum.Enum):
        return form(value)
    if _is_class(form, "model_validate"):
        return form.model_validate(value)
    fields = _fields(form)
    if fields is None:
        return value
    given = _expect(value, isinstance(value, dict), form)
    for name, (_, required) in fields.items():
        _expect(value, name in given or not required, form)
    known = {name: from_json(given[name], kind) for name, (kind, _) in fields.items() if name in given}
    return known if issubclass(form, dict) else form(**known)


def _expect(value: Any, holds: bool, form: Any) -> Any:
    if not holds:
        raise ValueError(f"{value!r} is not a value of type {_named(form)}")
    return value


def _first_fit(value: Any, forms: tuple[Any, ...], form: Any) -> Any:
    for part in forms:
        try:
            return from_json(value, part)
        except (ValueError, TypeError):
            continue
    return _expect(value, False, form)


def to_json(value: Any) -> Any:
    """A Python value as JSON. What JSON does not know is told as its text."""
    if value is None or isinstance(value, (str, bool)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if isinstance(value, (int, float)):
        finite = value == value and value not in (float("inf"), float("-inf"))
        return value if finite else str(value)
    if isinstance(value, dict):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(item) for item in value]
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: to_json(getattr(value, name)) for name in type(value).__dataclass_fields__}
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # numpy
        return to_json(value.tolist())
    if isinstance(value, (abc.Iterator, abc.ValuesView, abc.KeysView)):
        return [to_json(item) for item in value]
    return str(value)


def parameters_of(function: Callable[..., Any]) -> tuple[Schema, dict[str, Any]]:
    """The schema of a function's arguments, and the type of each. Descriptions come from the docstring."""
    import inspect

    signature = inspect.signature(function)
    hints = typing.get_type_hints(_plain(function), include_extras=True)
    described = docstring_of(function)[1]
    properties: dict[str, Schema] = {}
    forms: dict[str, Any] = {}
    required = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{_name(function)}: `{parameter}` cannot be an argument of a tool; give it a name and a type")
        has_default = parameter.default is not parameter.empty
        form = hints.get(name, type(parameter.default) if has_default and parameter.default is not None else Any)
        forms[name] = form
        try:
            schema = schema_of(form)
        except TypeError as error:
            raise TypeError(f"{_name(function)}: argument `{name}`: {error}") from None
        if name in described and "description" not in schema:
            schema["description"] = described[name]
        if has_default:
            schema["default"] = to_json(parameter.default)
        else:
            required.append(name)
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, forms


def returned_by(function: Callable[..., Any]) -> Schema | None:
    """The schema of what a function returns, where its annotation has one."""
    form = typing.get_type_hints(_plain(function), include_extras=True).get("return", Any)
    try:
        schema = schema_of(form)
    except TypeError:
        return None
    return schema or None


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that has the annotations: the method of an object that is called like one."""
    is_object = not hasattr(function, "__code__") and not hasattr(function, "__wrapped__") and not hasattr(function, "__func__")
    return type(function).__call__ if is_object and not isinstance(function, type) else function


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def docstring_of(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says about a function, and about each argument: in the style of Google, Sphinx or NumPy."""
    import inspect

    text = inspect.getdoc(function) or ""
    about: list[str] = []
    arguments: dict[str, str] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.strip() in ("Args:", "Arguments:", "Parameters:"):
            at = _google(lines, at + 1, arguments)
        elif line.strip() == "Parameters" and at + 1 < len(lines) and set(lines[at + 1].strip()) == {"-"}:
            at = _numpy(lines, at + 2, arguments)
        elif line.strip().startswith(":"):
            at = _sphinx(lines, at, arguments)
        elif line.strip() in ("Raises:", "Yields:", "Example:", "Examples:"):
            break
        else:
            about.append(line)
            at += 1
    return "\n".join(about).strip(), arguments


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], at: int, arguments: dict[str, str]) -> int:
    """`name (type): words` below a heading, until a line that is not indented."""
    outer = _indent(lines[at - 1])
    inner: int | None = None
    name = ""
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > outer):
        line = lines[at]
        at += 1
        if not line.strip():
            continue
        inner = _indent(line) if inner is None else inner
        head, colon, words = line.strip().partition(":")
        if _indent(line) == inner and colon:
            name = head.split("(")[0].strip().lstrip("*")
            arguments[name] = words.strip()
        elif name:
            arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return at


def _numpy(lines: list[str], at: int, arguments: dict[str, str]) -> int:
    """`name : type` and indented words below it."""
    name = ""
    while at < len(lines) and lines[at].strip():
        if at + 1 < len(lines) and lines[at + 1].strip() and set(lines[at + 1].strip()) == {"-"}:
            break
        if _indent(lines[at]) == 0:
            name = lines[at].split(":")[0].strip()
            arguments[name] = ""
        elif name:
            arguments[name] = f"{arguments[name]} {lines[at].strip()}".strip()
        at += 1
    return at


def _sphinx(lines: list[str], at: int, arguments: dict[str, str]) -> int:
    """`:param name: words`; other fields are left out."""
    field, _, words = lines[at].strip()[1:].partition(":")
    at += 1
    while at < len(lines) and lines[at].strip() and not lines[at].strip().startswith(":"):
        words = f"{words} {lines[at].strip()}"
        at += 1
    if field.startswith(("param ", "arg ", "argument ")):
        arguments[field.split()[-1]] = words.strip()
    return at
