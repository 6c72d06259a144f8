"""The results: a line of JSON for each try, kept at once, so that a killed run goes on where it stopped."""

import fcntl
import json
import os
import pathlib

Key = tuple[int, str, str]


class Mixed(Exception):
    """The results were made with something else than what is to go on now."""


class Results:
    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "results.jsonl"
        self.lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Mixed(f"another eval/exercism works in {folder}") from error
        self.rows = self.read()

    def read(self) -> list[dict]:
        """All whole lines. A line that a kill cut off is removed, and its try is made again."""
        if not self.file.exists():
            return []
        data = self.file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            with self.file.open("r+b") as file:
                file.truncate(len(whole))
        return [json.loads(line) for line in whole.splitlines() if line.strip()]

    def is_done(self, key: Key) -> bool:
        return any((row["round"], row["contender"], row["exercise"]) == key for row in self.rows)

    def expect(self, contender: str, setup: dict) -> None:
        """Refuses to go on with results that another program, server or limit made."""
        for row in self.rows:
            if row["contender"] == contender and row["setup"] != setup:
                old = {name: value for name, value in row["setup"].items() if setup.get(name) != value}
                raise Mixed(f"{self.file} has results of {contender} with {old}; now it is "
                            f"{ {name: setup.get(name) for name in old} }")

    def add(self, row: dict) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)
