"""The page: its files as they lie in `page/`, read once. Which view an address means is the page's own business."""

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from tocsin.console.answers import refuse
from tocsin.contract.refusals import Code, Refusal

FOLDER = Path(__file__).parents[1] / "page"
INDEX = "index.html"


class File(NamedTuple):
    """One file of the page."""

    content: bytes
    kind: str
    tag: str


def read(folder: Path = FOLDER) -> Mapping[str, File]:
    """Every file below `folder`, by its path from there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            text = kind.startswith("text/") or kind.endswith("javascript")
            tag = f'"{hashlib.blake2b(content, digest_size=8).hexdigest()}"'
            found[path.relative_to(folder).as_posix()] = File(content, f"{kind}; charset=utf-8" if text else kind, tag)
    return found


def routes(files: Mapping[str, File]) -> APIRouter:
    """Files by their path; every address without a dot in its last part is a view of the page."""
    router = APIRouter()

    @router.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(path: str, request: Request) -> Response:
        """A file of the page."""
        name = path if "." in path.rpartition("/")[2] else INDEX
        file = files.get(name)
        if file is None or path.startswith("api/"):
            return refuse(Refusal(Code.NOT_FOUND, "nothing is served here"))
        # Asked again at each load, and answered with 304: a console of another version never runs with scripts of this one.
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.kind, headers=headers)

    return router
