"""Names of `signal` for the standard library's own use; no signal is ever delivered."""

import enum


class Signals(enum.IntEnum):
    SIGINT = 2
    SIGABRT = 6
    SIGKILL = 9
    SIGTERM = 15
    SIGCHLD = 17


class Handlers(enum.IntEnum):
    SIG_DFL = 0
    SIG_IGN = 1


SIGINT, SIGABRT, SIGKILL, SIGTERM, SIGCHLD = Signals
SIG_DFL, SIG_IGN = Handlers


def default_int_handler(number, frame):
    raise KeyboardInterrupt


def getsignal(number):
    return SIG_DFL


def signal(number, handler):
    raise ValueError("signals are not available here")


def set_wakeup_fd(fd, *, warn_on_full_buffer=True):
    return -1
