"""Reads exercises from a file of JSON lines, packed or not, or from a checkout of exercism/python."""

import dataclasses
import gzip
import json
import pathlib

DOCS = ("introduction.md", "instructions.md", "instructions.append.md")
# What the repository keeps for itself: the example solution lies in `.meta`.
HIDDEN = (".meta", ".docs", ".approaches", ".articles", "__pycache__")


class Unreadable(Exception):
    """The data is not what this program reads."""


@dataclasses.dataclass(frozen=True)
class Exercise:
    name: str
    instructions: str
    solution: tuple[str, ...]
    test: tuple[str, ...]
    files: dict[str, str]

    @property
    def command(self) -> list[str]:
        """The command that judges a solution. A file of tests that does not end in `_test.py` is a helper."""
        modules = [pathlib.PurePath(path).stem for path in self.test if path.endswith("_test.py")]
        return ["python3", "-m", "unittest", *(modules or [pathlib.PurePath(self.test[0]).stem])]

    @property
    def task(self) -> str:
        """The words that every contender gets."""
        files, check = " and ".join(self.solution), " ".join(self.command)
        has = "has" if len(self.solution) == 1 else "have"
        return (f"{self.instructions.rstrip()}\n\nWrite the solution into {files}, which {has} only a stub now. "
                f"Check it with {check}")

    def lay_out(self, folder: pathlib.Path) -> None:
        for path, text in self.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def read(source: pathlib.Path) -> list[Exercise]:
    """All exercises of a file or a checkout, in the order of the data."""
    if source.is_dir():
        found = from_checkout(source)
    elif source.is_file():
        found = from_lines(source)
    else:
        raise Unreadable(f"there is no {source}")
    if not found:
        raise Unreadable(f"{source} holds no exercise")
    names = [exercise.name for exercise in found]
    if len(set(names)) != len(names):
        raise Unreadable(f"{source} names an exercise twice")
    return found


def from_lines(source: pathlib.Path) -> list[Exercise]:
    found = []
    packed = source.read_bytes()[:2] == b"\x1f\x8b"
    with gzip.open(source, "rt") if packed else source.open() as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                found.append(checked(Exercise(row["name"], row["instructions"], tuple(row["solution"]),
                                              tuple(row["test"]), dict(row["files"]))))
            except (ValueError, KeyError, TypeError) as error:
                raise Unreadable(f"{source}, line {number}: {error!r}") from error
    return found


def from_checkout(source: pathlib.Path) -> list[Exercise]:
    practice = source / "exercises" / "practice"
    if not practice.is_dir():
        raise Unreadable(f"{source} is no checkout of exercism/python: it has no exercises/practice")
    found = []
    for folder in sorted(practice.iterdir()):
        config = folder / ".meta" / "config.json"
        if not config.is_file():
            continue
        files = json.loads(config.read_text())["files"]
        docs = [folder / ".docs" / name for name in DOCS]
        instructions = "".join(doc.read_text() for doc in docs if doc.is_file())
        texts = {}
        for file in sorted(folder.rglob("*")):
            path = file.relative_to(folder)
            if file.is_file() and not set(path.parts) & set(HIDDEN) and path.name != "README.md":
                texts[path.as_posix()] = file.read_text()
        found.append(checked(
            Exercise(folder.name, instructions, tuple(files["solution"]), tuple(files["test"]), texts)))
    return found


def checked(exercise: Exercise) -> Exercise:
    """The exercise, if its files can be written below a folder and judged."""
    for path in [exercise.name, *exercise.files]:
        pure = pathlib.PurePosixPath(path)
        if not path or pure.is_absolute() or ".." in pure.parts:
            raise Unreadable(f"{exercise.name}: {path!r} is no path below the exercise")
    for path in (*exercise.solution, *exercise.test):
        if path not in exercise.files:
            raise Unreadable(f"{exercise.name}: {path} is missing")
    if not exercise.solution or not exercise.test:
        raise Unreadable(f"{exercise.name}: it names no solution or no test")
    return exercise
