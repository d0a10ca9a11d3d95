"""Is this request meant for us, and by a program of this machine? A web page that a person visits must not get in.

A page may send a simple request to any address, or let a name of its own resolve to loopback. What it cannot do is
forge its Origin, the Host that it asked for, or send JSON without asking first, which nobody here answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.contract.refusals import Code, Refusal

Headers = Mapping[bytes, bytes]
"""Headers by lower-case name. One that was sent more than once holds its values joined, as HTTP has it."""


def joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; repeated ones are joined by commas, so that no two readers of them can differ."""
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


@dataclass(frozen=True)
class Border:
    """The exact values of Host and Origin that may pass."""

    hosts: frozenset[bytes]
    origins: frozenset[bytes]

    @classmethod
    def around(cls, port: int, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> "Border":
        """The border of a server that listens on `port` of loopback and is also reached as `hosts`."""
        own = (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}")
        return cls(frozenset(host.lower().encode() for host in (*own, *hosts)), frozenset(origin.encode() for origin in origins))

    def check(self, headers: Headers) -> Refusal | None:
        """None when the request may pass. Refuses: foreign_host, foreign_origin."""
        if headers.get(b"host", b"").lower() not in self.hosts:
            return Refusal(Code.FOREIGN_HOST, "the Host header is not an address of this server")
        if b"origin" in headers and headers[b"origin"] not in self.origins:
            return Refusal(Code.FOREIGN_ORIGIN, "the request has an Origin, so a web page sends it")
        return None


def check_json(headers: Headers) -> Refusal | None:
    """None when the body is said to be JSON, which no page can say in a simple request. Refuses: not_json."""
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return Refusal(Code.NOT_JSON, "the Content-Type is not application/json")
    return None
