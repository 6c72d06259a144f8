"""Sets a session up before any code of a model runs: streams, tools, what replaces the host."""

import builtins
import sys
import _gimlet
from _gimlet_errors import ToolError


class Stream:
    """Standard output or standard error."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    closed = False
    mode = "w"
    line_buffering = True

    def __init__(self, number, name):
        self._number = number
        self.name = name

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        _gimlet.write(self._number, text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def close(self):
        pass

    def isatty(self):
        return False

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def reconfigure(self, **options):
        pass

    def fileno(self):
        import io
        raise io.UnsupportedOperation("fileno")

    def __enter__(self):
        return self

    def __exit__(self, *details):
        pass

    def __repr__(self):
        return f"<stream {self.name}>"


class NoInput(Stream):
    """Standard input, where nobody types."""

    mode = "r"

    def read(self, size=-1):
        return ""

    def readline(self, size=-1):
        return ""

    def readlines(self, hint=-1):
        return []

    def __iter__(self):
        return iter(())

    def readable(self):
        return True

    def writable(self):
        return False

    def write(self, text):
        import io
        raise io.UnsupportedOperation("not writable")


ToolError.__module__ = "builtins"


def make_tool(name, doc, call=_gimlet.call):
    def tool(*args, **kwargs):
        return call(name, args, kwargs)

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = doc
    tool.__module__ = "builtins"
    return tool


def final_answer(*args, **kwargs):
    """Ends the task with this answer."""
    if len(args) + len(kwargs) != 1 or (kwargs and not kwargs.keys() & {"answer", "value", "result"}):
        raise TypeError(f"final_answer() takes exactly 1 argument ({len(args) + len(kwargs)} given)")
    _gimlet.answer(args[0] if args else next(iter(kwargs.values())))


def no_files(file=None, mode="r", *args, **kwargs):
    # A call that would do instead helps more than words; which tools there are is the agent's business.
    reads = isinstance(mode, str) and not set(mode) & set("wax+")
    if reads and hasattr(builtins, "read_file"):
        instead = f"call read_file({file!r})"
    elif not reads and hasattr(builtins, "edit_file"):
        instead = f"call edit_file({file!r}, old_text, new_text)"
    else:
        instead = "call a tool that reads or writes files"
    raise PermissionError(f"open({file!r}) is not possible: there are no files here; {instead}")


def no_input(prompt="", /):
    raise EOFError("input() is not possible: nobody is there to type; use the values you have or call a tool")


class Quitter:
    def __init__(self, name):
        self._name = name

    def __call__(self, code=None):
        raise SystemExit(code)

    def __repr__(self):
        return f"Use {self._name}() to end the cell"


def prepare(patch):
    sys.stdout = sys.__stdout__ = Stream(1, "<stdout>")
    sys.stderr = sys.__stderr__ = Stream(2, "<stderr>")
    sys.stdin = sys.__stdin__ = NoInput(0, "<stdin>")
    sys.argv = [""]
    sys.path = []
    sys.executable = sys._base_executable = ""
    sys.prefix = sys.base_prefix = sys.exec_prefix = sys.base_exec_prefix = "/"

    builtins.open = no_files
    builtins.input = no_input
    builtins.exit = Quitter("exit")
    builtins.quit = Quitter("quit")
    builtins.final_answer = final_answer
    # Frozen modules have none, and a few of them ask for their own.
    builtins.__file__ = "<python>"
    builtins.ToolError = ToolError
    for name in ("breakpoint",):
        if hasattr(builtins, name):
            delattr(builtins, name)
    import _io
    _io.open = no_files
    _io.open_code = no_files

    def replace(self, /, **changes):
        """Returns a copy that differs in what it is called; its instructions cannot be changed here."""
        return _gimlet.rename_code(self, changes)

    patch(type(prepare.__code__), "replace", replace)

    import _random
    seed_with = _random.Random.seed

    def seed(self, a=None):
        """Seeds the generator; without a seed, with the session's next random number."""
        return seed_with(self, _gimlet.random() if a is None else a)

    patch(_random.Random, "seed", seed)

    import _datetime
    import time

    def now(cls, tz=None):
        """The session's time."""
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls):
        """The session's time in UTC, without a time zone."""
        return cls.fromtimestamp(time.time(), _datetime.UTC).replace(tzinfo=None)

    patch(_datetime.datetime, "now", classmethod(now))
    patch(_datetime.datetime, "utcnow", classmethod(utcnow))
