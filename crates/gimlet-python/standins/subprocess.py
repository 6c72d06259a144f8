"""Names of `subprocess` for the standard library's own use; nothing can be started."""

PIPE, STDOUT, DEVNULL = -1, -2, -3


class SubprocessError(Exception):
    pass


class CalledProcessError(SubprocessError):
    pass


class TimeoutExpired(SubprocessError):
    pass


class Popen:
    def __init__(self, *args, **kwargs):
        raise PermissionError("there are no processes here; call a tool that runs commands")


def run(*args, **kwargs):
    Popen(*args, **kwargs)


call = check_call = check_output = getoutput = getstatusoutput = run
