"""Gimlet's Python session in full CPython: one process, one session, frames of JSON on standard input and output. It runs
in containers and, with the packages of a virtual environment, in the jail of commands.

Every frame comes after its length in four little-endian bytes. The parent sends `start`, then for each piece of code
`cell`, and answers each `call` of a tool by `result`, until `ended`. The process ends when its input closes.
"""

import ast
import builtins
import io
import json
import linecache
import os
import random
import re
import select
import signal
import socket
import struct
import sys
import tarfile
import threading
import time
import traceback

# After a limit or an answer the code is interrupted again and again until it is out, whatever it catches.
INSIST = 0.002
# How often the first process looks after the others, in milliseconds.
BREATH = 50
GATHER = 0.005
GATHER_CHARACTERS = 16384
# How much of other processes' output is read at once, and how much of it a dying session leaves as its last words.
PART = 1 << 20
LAST_WORDS = 4096
# Halves of characters, which JSON does not have.
HALVES = re.compile("[\ud800-\udfff]")
WORKSPACE = "/workspace"


if sys.version_info < (3, 10):
    sys.exit(f"Python 3.10 or newer is needed, and this is {sys.version.split()[0]}: {sys.executable}")
# What the code imports it may also have from the current folder, as where people type Python.
if "" not in sys.path:
    sys.path.insert(0, "")


class Stop(BaseException):
    """Ends the cell. Never seen by a model."""


# What a failed tool raises comes before this text, from the embedded interpreter's own.
ToolError.__module__ = "__main__"


class Pipe:
    """The frames. Holds the real standard streams; the code and the processes it starts get files in their place, from
    which a session takes what was printed."""

    def __init__(self, source, files):
        self.input = os.fdopen(source, "rb")
        self.output = os.fdopen(os.dup(1), "wb")
        self.busy = False
        null = os.open(os.devnull, os.O_RDWR)
        for file, stream in zip((null, *files), (0, 1, 2)):
            os.dup2(file, stream)

    def exactly(self, length):
        data = self.input.read(length)
        if len(data) < length:
            os._exit(0)
        return data

    def receive(self):
        (length,) = struct.unpack("<I", self.exactly(4))
        return json.loads(self.exactly(length))

    def send(self, **message):
        body = HALVES.sub("\ufffd", json.dumps(message, ensure_ascii=False)).encode()
        self.busy = True
        self.output.write(struct.pack("<I", len(body)) + body)
        self.output.flush()
        self.busy = False


class Printed(io.TextIOBase):
    """Standard output or error of the code."""

    encoding = "utf-8"

    def __init__(self, session, stream):
        self.session, self.stream = session, stream

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.session.printed(self.stream, text)
        return len(text)

    def flush(self):
        self.session.flush()


class Tool:
    """A tool as a function. Arguments are bound as Python itself would."""

    def __init__(self, session, shape):
        self.session = session
        self.__name__ = shape["name"]
        properties = list((shape["input"].get("properties") or {}).keys())
        self.required = [name for name in properties if name in (shape["input"].get("required") or [])]
        self.names = self.required + [name for name in properties if name not in self.required]
        shown = ", ".join(name if name in self.required else f"{name}=..." for name in self.names)
        self.shown = f"{self.__name__}({shown})"
        self.__doc__ = f"{self.shown}\n\n{shape['description']}"

    def __repr__(self):
        return f"<function {self.__name__}>"

    def __call__(self, *positional, **keywords):
        return self.session.call(self.__name__, self.bind(positional, keywords))

    def bind(self, positional, keywords):
        name, most, least = self.__name__, len(self.names), len(self.required)
        if len(positional) > most:
            takes = str(most) if least == most else f"from {least} to {most}"
            verb = "was" if len(positional) == 1 else "were"
            raise TypeError(
                f"{name}() takes {takes} positional argument{'' if most == 1 else 's'}"
                f" but {len(positional)} {verb} given"
            )
        bound = dict(zip(self.names, positional))
        for keyword, value in keywords.items():
            if keyword not in self.names:
                steps, near = min(((distance(keyword, known), known) for known in self.names), default=(9, ""))
                close = steps * 2 <= len(keyword.encode())
                more = f". Did you mean '{near}'?" if close else f"; its signature is {self.shown}"
                raise TypeError(f"{name}() got an unexpected keyword argument '{keyword}'{more}")
            if keyword in bound:
                raise TypeError(f"{name}() got multiple values for argument '{keyword}'")
            bound[keyword] = value
        missing = [f"'{wanted}'" for wanted in self.required if wanted not in bound]
        if missing:
            listed = " and ".join(missing) if len(missing) < 3 else f"{', '.join(missing[:-1])}, and {missing[-1]}"
            raise TypeError(
                f"{name}() missing {len(missing)} required positional"
                f" argument{'' if len(missing) == 1 else 's'}: {listed}"
            )
        return {key: self.argument(key, value) for key, value in bound.items()}

    def argument(self, key, value):
        try:
            return plain(value, strict=True)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"{self.__name__}() argument '{key}': {error}") from None


def distance(one, other):
    """How many characters must be added, left out, changed or swapped with the next to make one word of the other."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            steps = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                steps = min(steps, rows[-2][j - 2] + 1)
            row.append(steps)
        rows.append(row)
    return rows[-1][-1]


def plain(value, strict):
    """A value as JSON has it. An argument must arrive as what it is; an answer in words is better than none."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return int(value)
        if strict:
            raise OverflowError("this int has more than 64 bits; pass it as a string")
        return str(value)
    if isinstance(value, float):
        if value - value == 0:
            return float(value)
        if strict:
            shown = "NaN" if value != value else float.__repr__(value)
            raise ValueError(f"{shown} is not a number that JSON has; pass it as a string")
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, strict) for item in value]
    if isinstance(value, dict):
        return {key_text(key, strict): plain(item, strict) for key, item in value.items()}
    if strict:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return str(value)


def key_text(key, strict):
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, (int, float)) or not strict:
        return str(key)
    raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


def shorten(text, most, keep_end=False):
    cut = len(text) - most
    if cut <= 0:
        return text
    return f"[{cut} characters cut] …{text[cut:]}" if keep_end else f"{text[:most]}… [{cut} more characters]"


class Session:
    """The variables, and what the running cell may still spend. Threads of the code share it, one at a time."""

    def __init__(self, pipe, files, start):
        self.pipe = pipe
        self.limits = start["limits"]
        wall = self.limits["wall"]
        self.wall = wall["secs"] + wall["nanos"] / 1e9
        self.lock = threading.RLock()
        self.running = self.forked = False
        self.stream, self.waiting, self.sent = "stdout", "", 0.0
        self.begun = {}
        self.files = dict(zip(("stdout", "stderr"), files))
        self.taken = dict.fromkeys(self.files, 0)
        self.renew()
        tools = {shape["name"]: Tool(self, shape) for shape in start["tools"]}
        self.protected = set(tools) | {"final_answer"}
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        self.names = main.__dict__
        self.names.update(tools, final_answer=self.final_answer, ToolError=ToolError)
        self.given = set(self.names)
        random.seed(start["seed"])
        signal.signal(signal.SIGALRM, self.interrupt)
        os.register_at_fork(after_in_child=self.fork)
        sys.stdout, sys.stderr = Printed(self, "stdout"), Printed(self, "stderr")
        sys.argv = [""]
        builtins.input = no_input
        del builtins.breakpoint
        sys.setrecursionlimit(self.limits["recursion"])

    def renew(self):
        """What a thread prints after its cell has ended belongs to the next one."""
        self.calls, self.left, self.dropped = 0, self.limits["output"], 0
        self.reason = self.answer = None

    def fork(self):
        """In a process that the code has forked, which must not speak in its parent's name."""
        self.lock, self.forked, self.running, self.begun = threading.RLock(), True, False, {}

    def interrupt(self, *_):
        # A frame that is on its way is sent whole first: the signal comes again.
        if self.running and not self.pipe.busy:
            self.stop("time")

    def stop(self, reason):
        # Once: code that asks for it again and again would put the next signal off for ever.
        if self.running and not self.reason:
            signal.setitimer(signal.ITIMER_REAL, INSIST, INSIST)
        self.reason = self.reason or reason
        raise Stop

    def printed(self, stream, text):
        if self.forked:
            self.write_lines(stream, text)
            return
        with self.lock:
            if self.reason:
                return
            self.gather()
            self.put(stream, text)
            due = time.monotonic() - self.sent >= GATHER or len(self.waiting) >= GATHER_CHARACTERS
            if due and self.waiting.endswith("\n"):
                self.send_waiting()

    def write_lines(self, stream, text):
        """What a forked process prints, a line at a time: pieces of lines would mix with those of other processes."""
        with self.lock:
            text = self.begun.pop(stream, "") + text
            end = text.rfind("\n") + 1
            if len(text) - end < GATHER_CHARACTERS:
                text, self.begun[stream] = text[:end], text[end:]
            self.write_out(stream, text)

    def write_out(self, stream, text):
        os.write(1 if stream == "stdout" else 2, text.encode("utf-8", "replace"))

    def put(self, stream, text):
        kept = text[: self.left]
        self.dropped += len(text) - len(kept)
        self.left -= len(kept)
        if stream != self.stream:
            self.send_waiting()
            self.stream = stream
        self.waiting += kept

    def gather(self):
        """Takes what processes have printed that the code has started."""
        for stream, file in self.files.items():
            while os.fstat(file).st_size > self.taken[stream]:
                part = os.pread(file, PART, self.taken[stream])
                self.taken[stream] += len(part)
                self.put(stream, part.decode("utf-8", "replace"))

    def flush(self):
        with self.lock:
            if not self.forked:
                self.gather()
                self.send_waiting()
            while self.begun:
                self.write_out(*self.begun.popitem())

    def send_waiting(self):
        """Sends what was printed; a loop may print a hundred thousand lines, so a few wait for each other."""
        if self.waiting:
            self.pipe.busy = True
            text, self.waiting = self.waiting, ""
            self.pipe.send(type="printed", stream=self.stream, text=text)
        self.sent = time.monotonic()

    def final_answer(self, *positional, **keywords):
        """Ends the run with this answer."""
        given = [*positional, *keywords.values()]
        if len(given) != 1 or not keywords.keys() <= {"answer", "value", "result"}:
            raise TypeError(f"final_answer() takes exactly 1 argument ({len(given)} given)")
        self.refuse_strangers("final_answer")
        self.answer = plain(given[0], strict=False)
        self.stop("answer")

    def refuse_strangers(self, tool):
        if self.forked:
            raise RuntimeError(f"{tool}() is not possible in a process of its own; call it where the code runs")
        if not self.running and not self.reason:
            raise RuntimeError(f"{tool}() is not possible once the code has ended; wait for its threads")

    def call(self, tool, args):
        with self.lock:
            self.refuse_strangers(tool)
            if self.reason:
                self.stop(self.reason)
            if self.calls >= self.limits["calls"]:
                self.stop("calls")
            identity, self.calls = self.calls, self.calls + 1
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            self.flush()
            self.pipe.send(type="call", id=identity, tool=tool, args=args)
            reply = self.pipe.receive()
            if reply["type"] == "stop":
                self.stop("asked")
            if self.reason:
                self.stop(self.reason)
            if self.running:
                signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), INSIST)
        if "failed" in reply:
            raise ToolError(reply["failed"])
        return reply["ok"]

    def run(self, number, code):
        """Runs a cell and says how it ended."""
        file = f"<cell {number}>"
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        end, line = None, None
        refused = self.refusal(file, code) or too_deep(file, code, self.limits["nesting"])
        try:
            try:
                if refused:
                    end = {"end": "raised", "kind": "SyntaxError", "traceback": refused}
                else:
                    self.running = True
                    signal.setitimer(signal.ITIMER_REAL, self.wall, INSIST)
                    end = {"end": "done", "value": self.execute(file, code)}
            finally:
                self.running = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Stop as stopped:
            line = line_in(stopped, file)
        except BaseException as error:
            end = self.raised(error)
        if self.forked:
            self.leave(end)
        # A call that a thread has made is answered first.
        with self.lock:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.gather()
            if self.dropped:
                self.waiting += f"\n[output limit reached: {self.dropped} more characters were not kept]\n"
            self.send_waiting()
            self.pipe.send(**self.ended(number, end, line))
            self.renew()
            for stream, taken in self.taken.items():
                if taken and os.fstat(self.files[stream]).st_size == taken:
                    os.ftruncate(self.files[stream], 0)
                    self.taken[stream] = 0

    def raised(self, error):
        try:
            return {"end": "raised", "kind": class_name(error), "traceback": self.report(error)}
        except Exception as failure:
            kind = type_name(type(error))
            text = f"{kind}: <it cannot be shown: {type_name(type(failure))}>\n"
            return {"end": "raised", "kind": kind, "traceback": text}

    def leave(self, end):
        """Ends a process that the code has forked, where it comes to the code's end."""
        failed = end is None or end["end"] == "raised"
        if end and failed and end["kind"] != "SystemExit":
            self.printed("stderr", end["traceback"])
        self.flush()
        os._exit(int(failed))

    def ended(self, number, end, line):
        if self.reason == "asked":
            return {"type": "stopped", "line": line}
        fate = "cut" if self.reason == "time" else "whole"
        if self.reason == "answer":
            end = {"end": "answer", "value": self.answer}
        elif self.reason:
            end = {"end": "limited", "message": self.limit()}
        about = {"fate": fate, "health": "good", "variables": self.variables()}
        return {"type": "ended", "number": number, "end": end, **about}

    def variables(self):
        """What the code has bound, in the order it was first bound; sizes only of Python's own types and what is made of
        them, told by those, so that nothing of the code's runs for it."""
        found = []
        for name, value in list(self.names.items()):
            if type(name) is not str or name.startswith("_") or name in self.given:
                continue
            entry = {"name": name, "type": type_name(type(value))}
            kinds = type.__dict__["__mro__"].__get__(type(value))
            for kind in (str, list, tuple, dict, set, frozenset, bytes):
                if any(base is kind for base in kinds):
                    entry["size"] = kind.__len__(value)
            if not any(base is type(ast) for base in kinds):
                found.append(entry)
        return found[-50:]

    def refusal(self, file, code):
        """What is refused before anything runs, as the text of a syntax error."""
        if len(code.encode()) > self.limits["source"]:
            return syntax_error(file, code, 1, f"the source is longer than {self.limits['source']} bytes")
        try:
            tree = ast.parse(code, file)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        for name, line in bindings(tree.body):
            if name in self.protected:
                shown = shorten(code.split("\n")[line - 1].strip(), 200)
                verb, advice = "assign to", f"choose another name for what is new, such as '{name}_result'"
                if shown.startswith(("def ", "async def ", "class ")):
                    verb, advice = "define", f"leave this definition out and call {name}(...)"
                return (
                    f'  File "{file}", line {line}\n    {shown}\n'
                    f"SyntaxError: cannot {verb} '{name}': it is a tool and ready to call; {advice}\n"
                )
        return None

    def execute(self, file, code):
        tree = ast.parse(code, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            body = compile(tree, file, "exec")
            shown = last and compile(ast.Expression(last.value), file, "eval")
        except SyntaxError as error:
            # A tree does not know the text it was made of.
            error.text = error.text or linecache.getline(file, error.lineno or 0)
            raise
        exec(body, self.names)
        if shown is None:
            return None
        value = eval(shown, self.names)
        if value is None:
            return None
        text = shorten(repr(value), self.limits["value"])
        # As where people type Python.
        self.names["_"] = value
        return text

    def limit(self):
        kept = "and was stopped; variables keep the values they had"
        if self.reason == "time":
            return f"TimeoutError: the code ran longer than {self.wall:g} s {kept}"
        return f"the code made more than {self.limits['calls']} tool calls in one cell {kept}"

    def report(self, error):
        """The traceback without the frames of this file."""
        seen = set()
        at = error
        while at is not None and id(at) not in seen:
            seen.add(id(at))
            at.__traceback__ = own_frames(at.__traceback__)
            at = at.__cause__ or at.__context__
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return shorten(text, self.limits["value"], keep_end=True)


def own_frames(entry):
    """The traceback from the first frame of a cell on, without this file's."""
    own = main.__code__.co_filename
    while entry is not None and not entry.tb_frame.f_code.co_filename.startswith("<cell "):
        entry = entry.tb_next
    at = entry
    while at is not None and at.tb_next is not None:
        if at.tb_next.tb_frame.f_code.co_filename == own:
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    return entry


def line_in(error, file):
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == file:
            return entry.tb_lineno
        entry = entry.tb_next
    return None


def type_name(kind):
    """A class's name, whatever its own class makes of names."""
    return type.__dict__["__name__"].__get__(kind)


def class_name(error):
    kind = type(error)
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"


def no_input(prompt="", /):
    raise EOFError("input() is not possible: nobody is there to type; use the values you have or call a tool")


def bindings(body):
    """Names that statements of the outermost level bind, or any declares global, with their lines."""
    found, todo = set(), [(node, False) for node in body]
    while todo:
        node, inner = todo.pop()
        name, children = None, ast.iter_child_nodes(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name, children = node.name, node.body
        elif isinstance(node, ast.Lambda):
            children = ()
        elif isinstance(node, ast.comprehension):
            children = (node.iter, *node.ifs)
        elif isinstance(node, ast.Global):
            found.update((name, node.lineno) for name in node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            name = node.id
        elif isinstance(node, ast.alias):
            name = (node.asname or node.name).split(".")[0]
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            name = node.name
        elif isinstance(node, ast.MatchMapping):
            name = node.rest
        if name and not inner:
            found.add((name, node.lineno))
        within = inner or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        todo.extend((child, within) for child in children)
    return sorted(found)


def syntax_error(file, code, line, message):
    shown = shorten(code.split("\n")[line - 1].strip(), 200)
    return f'  File "{file}", line {line}\n    {shown}\nSyntaxError: {message}\n'


# What nesting is made of: beginnings of lines, brackets, and operators that nest to the right. Comments and strings are not.
NESTS = re.compile(
    r'''(?P<none>\#[^\n]* | ("""|\'\'\')(?:\\.|(?!\2).)*(?:\2)? | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?)
    | (?P<line>(?:^|\n)[ \t]*(?=[^\s\#])) | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<prefix>[-+~*] | \b(?:not|lambda|await|else|elif|if)\b)''',
    re.DOTALL | re.VERBOSE,
)


def too_deep(file, code, most):
    """The text of a syntax error, if code nests more deeply than it may."""
    brackets, prefixes, indents, message = 0, 0, [0], None
    for part in NESTS.finditer(code):
        kind = part.lastgroup
        if kind == "open":
            brackets += 1
            message = "too many nested parentheses" if brackets > most else None
        elif kind == "close":
            brackets = max(brackets - 1, 0)
        elif kind == "prefix":
            prefixes += 1
            message = "too many nested operators" if prefixes > most * 50 else None
        elif kind == "line" and not brackets:
            width, prefixes = len(part.group().lstrip("\n")), 0
            indents = [*(indent for indent in indents if indent < width), width]
            message = "too many levels of indentation" if len(indents) > most else None
        if message:
            return syntax_error(file, code, code.count("\n", 0, part.end()) + 1, message)
    return None


def unpack(pipe, length):
    """The project's files come first, so that the code has a copy of its own to work on. What is missing, in words."""
    missing = []
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        with tarfile.open(fileobj=io.BytesIO(pipe.exactly(length))) as archive:
            for member in archive:
                try:
                    archive.extract(member, WORKSPACE, **safely)
                except (OSError, tarfile.TarError) as error:
                    missing.append(f"{member.name}: {error}")
    except (OSError, tarfile.TarError) as error:
        missing.append(str(error))
    os.chdir(WORKSPACE)
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return missing[0] + more if missing else ""


def conceal(whether):
    """Keeps other processes of the same user out of this one, or lets them in again; whether that was possible."""
    try:
        import ctypes

        return ctypes.CDLL(None).prctl(4, int(not whether), 0, 0, 0) == 0  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        return False


def stand_apart():
    """Closes the first process to everything that will run beside it, and only then lets the parent go on: who reached this
    process's input before could hold it open, and with it the container."""
    if not conceal(True):
        sys.exit("its Python lacks ctypes, without which what runs in a container could keep it alive")
    os.write(1, b"apart\n")


def guard(child, channel=None, errors=None):
    """The container's first process: when it ends, everything ends. It ends when its input closes or its child does.

    The child gets the input through a socket: a pipe could be opened again for writing, and would then never close."""
    waiting = b""
    while True:
        poll = select.poll()
        poll.register(0, select.POLLIN if channel and not waiting else 0)
        if waiting:
            poll.register(channel, select.POLLOUT)
        for file, event in poll.poll(BREATH):
            if file == 0 and event & ~select.POLLIN:
                os._exit(0)
            if file == 0:
                waiting = os.read(0, 1 << 16) or os._exit(0)
        if waiting:
            try:
                waiting = waiting[channel.send(waiting) :]
            except BlockingIOError:
                pass
            except OSError:
                waiting = b""
        reap(child, errors)


def reap(child, errors):
    """Takes leave of processes that have ended; with the child ends everything."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            os.write(2, os.pread(errors, LAST_WORDS, max(0, os.fstat(errors).st_size - LAST_WORDS)))
            if ran_out():
                print("memory allocation of more than the container may have", file=sys.stderr)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def ran_out():
    """Whether the kernel has killed for memory, in either kind of control group."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as counts:
                return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in counts)
        except OSError:
            continue
    return False


def stand_in():
    """A file for what processes print: it takes what there is room for, and nobody must read in time."""
    flags = os.O_RDWR | os.O_APPEND
    try:
        return os.open(os.environ.get("TMPDIR", "/tmp"), flags | os.O_TMPFILE, 0o600)
    except OSError:
        return os.open(os.devnull, flags)


def main():
    asked = sys.argv[1] if len(sys.argv) > 1 else "0"
    if os.getpid() == 1:
        stand_apart()
    if asked == "wait":
        guard(None)
    files = stand_in(), stand_in()
    if os.getpid() == 1:
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child:
            os.close(1)
            theirs.close()
            ours.setblocking(False)
            guard(child, ours, files[1])
        ours.close()
        conceal(False)
        source = theirs.detach()
    else:
        source = os.dup(0)
    pipe = Pipe(source, files)
    length = int(asked)
    missing = unpack(pipe, length) if length else ""
    gaps = ", ".join(filter(None, [missing, *sys.argv[2:]]))
    weaknesses = [f"{WORKSPACE} does not hold the whole project: {gaps}"] if gaps else []
    session = Session(pipe, files, pipe.receive())
    pipe.send(type="ready", weaknesses=weaknesses)
    try:
        while True:
            cell = pipe.receive()
            session.run(cell["number"], cell["code"])
    except BaseException:
        # Not as Python ends by itself: that would wait for threads.
        traceback.print_exc(file=sys.__stderr__)
        sys.__stderr__.flush()
        os._exit(70)


main()
