"""Names of `socket` for the standard library's own use; nothing can be connected."""

AF_UNSPEC, AF_INET, AF_INET6 = 0, 2, 10
SOCK_STREAM, SOCK_DGRAM = 1, 2
IPPROTO_TCP, IPPROTO_UDP = 6, 17
AI_PASSIVE = NI_NUMERICHOST = SOL_SOCKET = SO_REUSEADDR = SO_KEEPALIVE = TCP_NODELAY = SO_BROADCAST = 1
SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2
has_ipv6 = False
error = OSError
timeout = TimeoutError


class gaierror(OSError):
    pass


class herror(OSError):
    pass


class socket:
    def __init__(self, *args, **kwargs):
        raise PermissionError("there is no network here")


def _refused(*args, **kwargs):
    raise PermissionError("there is no network here")


getaddrinfo = getnameinfo = gethostbyname = create_connection = create_server = socketpair = _refused


def gethostname():
    return "localhost"
