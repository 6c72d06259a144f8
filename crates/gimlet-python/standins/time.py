"""`time` with the session's clock, which moves when it is read or slept on and runs alike in every replay."""

import _gimlet
import _gimlet_time as _real

struct_time = _real.struct_time
strptime = _real.strptime
mktime = _real.mktime
timezone = 0
altzone = 0
daylight = 0
tzname = ("UTC", "UTC")

_started = _gimlet.now_ns()


def time_ns():
    return _gimlet.now_ns()


def time():
    return _gimlet.now_ns() / 1e9


def monotonic_ns():
    return _gimlet.now_ns() - _started


def monotonic():
    return monotonic_ns() / 1e9


perf_counter_ns = process_time_ns = thread_time_ns = monotonic_ns
perf_counter = process_time = thread_time = monotonic


def sleep(seconds, /):
    """Moves the clock; nothing waits."""
    _gimlet.sleep(float(seconds))


def gmtime(seconds=None, /):
    return _real.gmtime(time() if seconds is None else seconds)


def localtime(seconds=None, /):
    return gmtime(seconds)


def asctime(moment=None, /):
    return _real.asctime(gmtime() if moment is None else moment)


def ctime(seconds=None, /):
    return asctime(gmtime(seconds))


def strftime(format, moment=None, /):
    return _real.strftime(format, gmtime() if moment is None else moment)


def tzset():
    pass


def get_clock_info(name, /):
    import types
    if name not in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        raise ValueError("unknown clock")
    return types.SimpleNamespace(
        implementation="session clock", monotonic=name != "time", adjustable=False, resolution=1e-9
    )
