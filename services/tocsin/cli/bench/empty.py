"""An HTTP server that does nothing: the floor below hook-ingest, with the same uvicorn, loop and parser."""

import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
import uvloop


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, answer 204."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def main() -> None:
    """Serve on a free port, which is written into the file that is named on the command line."""
    bound = socket.create_server(("127.0.0.1", 0))
    Path(sys.argv[1]).write_text(str(bound.getsockname()[1]))
    config = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False, date_header=False
    )
    uvloop.run(uvicorn.Server(config).serve([bound]))


if __name__ == "__main__":
    main()
