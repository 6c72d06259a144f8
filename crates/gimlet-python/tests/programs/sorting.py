"""Sorting is stable and ordered whatever the keys are; `insert` is the plainest way to say so."""

import random
from fractions import Fraction


def insert(values, key, reverse):
    """Sorts by insertion with `<` alone."""
    done = []
    for value in values:
        place = len(done)
        while place and (key(done[place - 1]) < key(value) if reverse else key(value) < key(done[place - 1])):
            place -= 1
        done.insert(place, value)
    return done


def same(a, b):
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


class Number(int):
    pass


class Word(str):
    pass


class Backwards:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value > other.value


kinds = {
    "ints": lambda: random.randrange(-20, 20),
    "words of the machine": lambda: random.choice([2**63 - 1, -(2**63), 0, 2**62]),
    "large ints": lambda: random.choice([2**63, -(2**63) - 1, 2**200, 7, 2**64 + 1]),
    "ints and bools": lambda: random.choice([True, False, 0, 1, 2]),
    "ints and their children": lambda: random.choice([Number(3), 3, Number(1), 2]),
    "floats": lambda: random.choice([0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), 1e-300]),
    "ints and floats": lambda: random.choice([1, 1.0, 2, 0.5, -3]),
    "strings": lambda: random.choice(["", "a", "B", "é", "e\u0301", "\U0001f600", "\uffff", "\ud800", "aa", "a\0"]),
    "strings and their children": lambda: random.choice(["b", Word("a"), "c", Word("b")]),
    "tuples": lambda: (random.randrange(3), random.choice("ab")),
    "lists": lambda: [random.randrange(3)],
    "bytes": lambda: random.choice([b"a", b"", b"\xff"]),
    "objects": lambda: Backwards(random.randrange(5)),
    "fractions": lambda: Fraction(random.randrange(5), 3),
}
random.seed(7)
for kind, make in kinds.items():
    for size in [0, 1, 2, 3, 20, 60]:
        for reverse in [False, True]:
            # Boxed, so that equal values can be told apart.
            values = [[make()] for _ in range(size)]
            keys = [box[0] for box in values]
            wanted = insert(values, lambda box: box[0], reverse)
            assert same(sorted(values, key=lambda box: box[0], reverse=reverse), wanted), (kind, keys)
            mine = values[:]
            assert mine.sort(key=lambda box: box[0], reverse=reverse) is None
            assert same(mine, wanted), (kind, keys)
            assert same(sorted(keys, reverse=reverse), [box[0] for box in wanted]), (kind, keys)
            assert same(sorted(iter(keys), reverse=reverse, key=None), [box[0] for box in wanted]), (kind, keys)

nan = float("nan")
assert sorted([1.0, nan])[0] == 1.0 and sorted([nan])[0] is nan


def error(attempt):
    try:
        attempt()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


shown = [
    error(lambda: sorted([1, "a"])),
    error(lambda: sorted([1, None, 2], key=lambda v: v)),
    error(lambda: sorted(5)),
    error(lambda: sorted()),
    error(lambda: [].sort(1)),
    error(lambda: sorted([1], key=3)),
    error(lambda: [2, 1].sort(key=lambda v: 1 / 0)),
    error(lambda: sorted([1], cmp=None)),
    error(lambda: list.sort((2, 1))),
]
seen = []
watched = [3, 1, 2]
watched.sort(key=lambda v: seen.append(len(watched)) or v)
shown += [seen, watched]
touched = [3, 1, 2]
shown += [error(lambda: touched.sort(key=lambda v: touched.append(v) or v)), touched]
failed = [3, 1, 2]
shown += [error(lambda: failed.sort(key=lambda v: 1 / (v - 2))), sorted(failed)]


class Mine(list):
    pass


mine = Mine([2, 3, 1])
mine.sort(reverse=True)
shown += [mine, type(mine).__name__, type(list.sort).__name__, repr(sorted), sorted({3, 1, 2}), sorted("cab")]
shown += [sorted({"b": 1, "a": 2}), sorted([(1, "b"), (1, "a"), (0, "c")]), sorted(["b", "A"], key=str.lower)]
for line in shown:
    print(line)
