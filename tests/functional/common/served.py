"""An application and a worker with short times, for tests of the worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common import config, log
from web import serving
from web.file_parts import FilePart
from web.streaming import BodyLost

THREADS = 2

log.setup(config.load([log.register]), "served")
LOG = log.logger(__name__)


class Worker(serving.Worker):
    """Gives up sooner."""

    request_seconds = 1.5
    answer_seconds = 1.5
    stream_seconds = 1.5
    streams = 3
    draining_seconds = 4.0


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return what was asked; `/large` is answered with more than a socket takes at once.

    A path below `/file` is answered with that file. `/long` answers with length and hash of what
    is sent to it; `/refused` doesn't read.
    """
    body = _read(environ)
    LOG.error("%s is asked", environ["PATH_INFO"])
    asked = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"],
        "body": body.decode("latin-1"),
        "peer": environ["REMOTE_ADDR"],
    }
    if asked["path"].startswith("/file"):
        part = FilePart(Path(asked["path"].removeprefix("/file")))
        start_response("200 OK", [("Content-Length", str(part.size))])
        return part.pieces(environ)
    answer = b"x" * 20_000_000 if asked["path"] == "/large" else json.dumps(asked).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
    start_response("200 OK", headers)
    return [answer]


def _read(environ: dict[str, Any]) -> bytes:
    if environ["PATH_INFO"] == "/refused":
        return b""
    if environ["PATH_INFO"] != "/long":
        return bytes(environ["wsgi.input"].read(10**6))
    length, sha256 = 0, hashlib.sha256()
    try:
        while data := environ["wsgi.input"].read(100_000):
            length += len(data)
            sha256.update(data)
    except BodyLost as error:
        LOG.error("lost after %d: %s", length, error)
        return f"lost: {error}".encode()
    return f"{length} {sha256.hexdigest()}".encode()
