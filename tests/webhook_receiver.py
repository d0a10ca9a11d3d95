"""Where a webhook goes in tests: what it was sent, and what it answers."""

import asyncio
import contextlib
from dataclasses import dataclass, field


@dataclass
class Receiver:
    """A loopback HTTP server that takes notices, or fails as it is told to."""

    port: int = 0
    statuses: list[int] = field(default_factory=list)  # of the next answers; 200 when there is none
    heads: list[dict[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    answers: str = ""
    gate: asyncio.Event | None = None  # answers wait for it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-topic"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            fields = dict(line.split(": ", 1) for line in head[1:] if line)
            fields = {name.lower(): value for name, value in fields.items()} | {"": head[0]}
            body = (await reader.readexactly(int(fields["content-length"]))).decode()
            self.heads.append(fields)
            self.bodies.append(body)
            if self.gate is not None:
                await self.gate.wait()
            status = self.statuses.pop(0) if self.statuses else 200
            said = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(self.answers)}\r\nConnection: close\r\nLocation: /elsewhere\r\n\r\n"
            writer.write((said + self.answers).encode())
            await writer.drain()
        writer.close()
