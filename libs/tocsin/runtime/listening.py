"""The socket on which a service listens."""

import socket


def bind(address: str, port: int, flags: int = 0) -> socket.socket:
    """A socket bound to a name or number, not yet listening. `flags` as getaddrinfo has them. Raises OSError."""
    family, kind, protocol, _, at = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=flags)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(at)
    except OSError:
        bound.close()
        raise
    return bound
