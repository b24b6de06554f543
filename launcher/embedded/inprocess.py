"""A WSGI application of this process as a server for `requests`: no socket, no second thread.

The embedded cloud's services talk to placement through the same client, session and token check
as separate processes do; only the bytes don't cross a socket. So a request can't wait for a free
thread of the very server that it came from, and costs a fraction of the CPU.
"""

from __future__ import annotations

import datetime
import io
import sys
import time
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

import requests
import requests.adapters
from requests.structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import WSGIApplication, WSGIEnvironment


class WsgiAdapter(requests.adapters.BaseAdapter):
    """Answers requests by calling `app`, which is mounted at the path `mount_point`."""

    def __init__(self, app: WSGIApplication, mount_point: str = "") -> None:
        super().__init__()
        self._app = app
        self._mount_point = mount_point

    def send(
        self, request: requests.PreparedRequest, *_args: Any, **_kwargs: Any
    ) -> requests.Response:
        """Return the application's answer; time-outs and certificates mean nothing here."""
        began = time.monotonic()
        status = ""
        headers: list[tuple[str, str]] = []

        def start_response(line: str, fields: list[tuple[str, str]], exc_info: Any = None) -> Any:
            nonlocal status
            status = line
            headers[:] = fields
            return lambda data: None

        chunks: Iterable[bytes] = self._app(self._environ(request), start_response)
        try:
            content = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        return self._response(request, status, headers, content, began)

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def _environ(self, request: requests.PreparedRequest) -> WSGIEnvironment:
        parts = urlsplit(request.url or "")
        stream, length = _input(request)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method or "GET",
            "SCRIPT_NAME": self._mount_point,
            "PATH_INFO": unquote(parts.path, "latin-1").removeprefix(self._mount_point),
            "QUERY_STRING": parts.query,
            "SERVER_NAME": parts.hostname or "",
            "SERVER_PORT": str(parts.port or 80),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": parts.netloc,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": str(length),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": parts.scheme,
            "wsgi.input": stream,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in request.headers.items():
            key = name.upper().replace("-", "_")
            if key == "CONTENT_TYPE":
                environ[key] = value
            elif key != "CONTENT_LENGTH":
                environ[f"HTTP_{key}"] = value
        return environ

    def _response(
        self,
        request: requests.PreparedRequest,
        status: str,
        headers: list[tuple[str, str]],
        content: bytes,
        began: float,
    ) -> requests.Response:
        response = requests.Response()
        code, _, reason = status.partition(" ")
        response.status_code = int(code)
        response.reason = reason
        response.headers = CaseInsensitiveDict(headers)
        response.raw = io.BytesIO(b"")
        response._content = content
        response.url = request.url or ""
        response.encoding = "utf-8"
        response.request = request
        response.elapsed = datetime.timedelta(seconds=time.monotonic() - began)
        return response


class _Pieces:
    """What an iterator yields, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, less at the end only, as Falcon counts them; -1: all."""
        found = [self._held]
        length = len(self._held)
        while not 0 <= size <= length and (piece := next(self._pieces, b"")):
            found.append(piece)
            length += len(piece)
        held = b"".join(found)
        end = length if size < 0 else size
        self._held = held[end:]
        return held[:end]


def _input(request: requests.PreparedRequest) -> tuple[IO[bytes], int]:
    """Return the body of a request and its length; a body of pieces is read while it is sent."""
    body: Any = request.body or b""
    if isinstance(body, str | bytes):
        data = body.encode() if isinstance(body, str) else body
        return io.BytesIO(data), len(data)
    return cast("IO[bytes]", _Pieces(iter(body))), int(request.headers["Content-Length"])
