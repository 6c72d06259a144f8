"""An event loop on the session's clock: it runs what is ready and, when nothing is, moves the clock on."""

import time

from . import base_events
from . import events

__all__ = ("SelectorEventLoop", "EventLoop")


class _Clock:
    """Stands where a selector would; waiting is moving the clock."""

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("every task waits and nothing can wake them")
        if timeout > 0:
            time.sleep(timeout)
        return []


class SelectorEventLoop(base_events.BaseEventLoop):
    """The only loop there is."""

    def __init__(self, selector=None):
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    def run_in_executor(self, executor, func, *args):
        """Calls at once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, timeout=None):
        pass


EventLoop = SelectorEventLoop


class _UnixDefaultEventLoopPolicy(events._BaseDefaultEventLoopPolicy):
    _loop_factory = SelectorEventLoop


_DefaultEventLoopPolicy = _UnixDefaultEventLoopPolicy
