"""Names of `selectors` for the standard library's own use; there is nothing to select from."""

EVENT_READ, EVENT_WRITE = 1, 2


class BaseSelector:
    pass


class DefaultSelector(BaseSelector):
    pass


SelectSelector = PollSelector = EpollSelector = DefaultSelector
