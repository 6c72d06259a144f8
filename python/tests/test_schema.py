"""Types and docstrings become schemas; JSON becomes values of the types."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import pytest

from gimlet._schema import docstring_of, from_json, parameters_of, schema_of, to_json


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Movie(TypedDict):
    title: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


FORMS: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (int, 3.0, 3),
    (float, 2, 2.0),
    (bool, True, True),
    (None, None, None),
    (Any, {"x": [1]}, {"x": [1]}),
    (list[int], [1, 2], [1, 2]),
    (set[str], ["a"], {"a"}),
    (tuple[int, str], [1, "b"], (1, "b")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (dict[str, float], {"a": 1}, {"a": 1.0}),
    (Optional[int], None, None),
    (int | str, "a", "a"),
    (Literal["a", 2], 2, 2),
    (Annotated[str, "what it is"], "a", "a"),
    (Colour, "blue", Colour.BLUE),
    (Point, {"x": 1}, Point(1)),
    (list[Point], [{"x": 1, "y": 2}], [Point(1, 2.0)]),
    (Movie, {"title": "M"}, {"title": "M"}),
    (Pair, {"left": 1}, Pair(1)),
    (datetime.date, "2026-11-18", datetime.date(2026, 11, 18)),
]


@pytest.mark.parametrize("form, sent, made", FORMS, ids=lambda value: str(value)[:30])
def test_values_of_types(form: Any, sent: Any, made: Any) -> None:
    assert isinstance(schema_of(form), dict)
    assert from_json(sent, form) == made
    again = from_json(to_json(made), form)
    assert again == made


@pytest.mark.parametrize("form, sent", [
    (str, 1), (int, "1"), (int, True), (list[int], ["a"]), (tuple[int, str], [1]), (Point, {}), (Colour, "green"),
    (Literal["a"], "b"), (int | None, "a"), (dict[str, int], []),
])
def test_what_does_not_fit_is_an_error(form: Any, sent: Any) -> None:
    with pytest.raises(ValueError):
        from_json(sent, form)


def test_types_without_a_schema_are_told_by_their_argument() -> None:
    def odd(stream: memoryview) -> None: ...

    def many(*args: int) -> None: ...

    with pytest.raises(TypeError, match="argument `stream`: memoryview has no JSON schema"):
        parameters_of(odd)
    with pytest.raises(TypeError, match="cannot be an argument of a tool"):
        parameters_of(many)


GOOGLE = '''Find memories.

    More about it.

    Args:
        query (str): what to look for,
            in words
        limit: how many

    Returns:
        the memories
    '''
SPHINX = "Find memories.\n\nMore about it.\n\n:param str query: what to look for,\n    in words\n:param limit: how many\n:returns: the memories"
NUMPY = '''Find memories.

    More about it.

    Parameters
    ----------
    query : str
        what to look for,
        in words
    limit : int
        how many
    '''


@pytest.mark.parametrize("text", [GOOGLE, SPHINX, NUMPY])
def test_docstrings(text: str) -> None:
    def recall(query: str, limit: int = 5) -> None: ...

    recall.__doc__ = text
    about, arguments = docstring_of(recall)
    assert about.startswith("Find memories.\n\nMore about it.")
    assert arguments == {"query": "what to look for, in words", "limit": "how many"}
    schema, _ = parameters_of(recall)
    assert schema["required"] == ["query"]
    assert schema["properties"]["limit"] == {"type": "integer", "description": "how many", "default": 5}
