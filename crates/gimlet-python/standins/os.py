"""The part of `os` that needs no operating system: names, and paths as text. What would need one says so.

The standard library may look for files and finds none. Code that was written here is told instead: it would take
"there is no such file" for the truth.
"""

import abc
import sys

name = "posix"
sep = "/"
altsep = None
pardir = ".."
curdir = "."
extsep = "."
pathsep = ":"
linesep = "\n"
devnull = "/dev/null"
defpath = "/bin:/usr/bin"
error = OSError
environ = {}
environb = {}
supports_dir_fd = set()
supports_fd = set()
supports_follow_symlinks = set()
supports_effective_ids = set()
F_OK, X_OK, W_OK, R_OK = 0, 1, 2, 4
SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2
O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND = 0, 1, 2, 64, 128, 512, 1024


def fspath(path):
    if isinstance(path, (str, bytes)):
        return path
    kind = type(path)
    try:
        found = kind.__fspath__(path)
    except AttributeError:
        if hasattr(kind, "__fspath__"):
            raise
        raise TypeError("expected str, bytes or os.PathLike object, not " + kind.__name__) from None
    if isinstance(found, (str, bytes)):
        return found
    raise TypeError(
        f"expected {kind.__name__}.__fspath__() to return str or bytes, not {type(found).__name__}"
    )


class PathLike(abc.ABC):
    """Anything that can stand for a path."""

    __slots__ = ()

    @abc.abstractmethod
    def __fspath__(self):
        raise NotImplementedError

    @classmethod
    def __subclasshook__(cls, subclass):
        if cls is PathLike:
            return hasattr(subclass, "__fspath__")
        return NotImplemented

    __class_getitem__ = classmethod(type(list[int]))


class stat_result(tuple):
    pass


class DirEntry:
    pass


class terminal_size(tuple):
    columns = property(lambda self: self[0])
    lines = property(lambda self: self[1])


def fsencode(filename):
    filename = fspath(filename)
    return filename.encode("utf-8", "surrogateescape") if isinstance(filename, str) else filename


def fsdecode(filename):
    filename = fspath(filename)
    return filename.decode("utf-8", "surrogateescape") if isinstance(filename, bytes) else filename


def getenv(key, default=None):
    return default


def getcwd():
    return "/"


def getcwdb():
    return b"/"


def getpid():
    return 1


def getppid():
    return 0


def getuid():
    return 65534


geteuid = getgid = getegid = getuid


def cpu_count():
    return 1


process_cpu_count = cpu_count


def isatty(fd):
    return False


def get_terminal_size(fd=1):
    return terminal_size((80, 24))


def strerror(code):
    import errno
    return errno.errorcode.get(code, f"Unknown error {code}")


def urandom(size, /):
    import _gimlet
    return _gimlet.urandom(size)


def getrandom(size, flags=0):
    return urandom(size)


def register_at_fork(**hooks):
    pass


def _nothing(name):
    def refused(*args, **kwargs):
        raise PermissionError(f"os.{name} is not possible: there is no operating system here; call a tool instead")

    refused.__name__ = refused.__qualname__ = name
    return refused


for _name in (
    "access chdir chmod chown close dup fdopen fstat kill link listdir lstat makedirs mkdir open popen putenv read "
    "readlink remove removedirs rename renames replace rmdir scandir stat symlink system truncate umask unlink "
    "unsetenv utime walk write fork execv execve"
).split():
    globals()[_name] = _nothing(_name)
del _name

import posixpath as path

sys.modules["os.path"] = path


def _only_for_the_library(name, function):
    def asked(*args, **kwargs):
        if sys._getframe(1).f_globals.get("__name__") == "__main__":
            raise PermissionError(f"{name} is not possible: there are no files here; call a tool that lists or reads files")
        return function(*args, **kwargs)

    asked.__name__ = asked.__qualname__ = function.__name__
    return asked


for _name in "exists lexists isfile isdir islink ismount getsize getmtime getatime getctime samefile realpath abspath".split():
    setattr(path, _name, _only_for_the_library("os.path." + _name, getattr(path, _name)))
del _name
getcwd = _only_for_the_library("os.getcwd", getcwd)


def __getattr__(name):
    raise AttributeError(f"os.{name} is not there: there is no operating system here; call a tool instead")
