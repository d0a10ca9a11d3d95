"""A wire between two machines that can be cut: then nothing passes, and nobody is told."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Relay:
    """Hands on TCP connections to the address of a url."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where the other machine finds the bus."""
        return f"nats://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """From now on what is sent waits on the wire, in both directions, and new connections hear nothing."""
        self._whole.clear()

    def heal(self) -> None:
        """What waits goes on its way."""
        self._whole.set()

    def close(self) -> None:
        """End it."""
        self.heal()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._whole.wait()
        try:
            far = socket.create_connection(self._to)
        except OSError:
            near.close()
            return
        self._open += [near, far]
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self._whole.wait()
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
