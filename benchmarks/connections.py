"""Measure what unfinished connections cost others: ``python -m benchmarks.connections``, JSON.

It starts an embedded cloud without a hypervisor (``--url`` takes a running API's instead, as
often as given), opens many connections of each kind to every API and to Keystone, and measures an
ordinary request at the same time, from the same address:

- `silent`: connected, not a byte sent,
- `head`: a request line and half a header,
- `body`: a whole head that announces a body, and one byte of it,
- `trickle`: a byte of a header every second,
- `unread`: whole requests one after the other, whose answers nobody reads.

No request carries a token. `worst_ms` is the time-out where a request was not answered.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.fixtures import null

KINDS = ("silent", "head", "body", "trickle", "unread")
TIMEOUT_SECONDS = 10.0
_BODY = (
    "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000\r\n\r\n{{"
)
_HEAD = "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Pad: a"
_WHOLE = "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
_UNREAD_REQUESTS = 2000


class Crowd:
    """Connections of one kind to one API; a context."""

    def __init__(self, url: str, kind: str, count: int) -> None:
        parts = urlsplit(url)
        self._address = (str(parts.hostname), parts.port or 80)
        self._words = {"path": parts.path, "host": parts.netloc}
        self._kind, self._count = kind, count
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()
        self._trickler = threading.Thread(target=self._trickle, daemon=True)

    def __enter__(self) -> Crowd:
        for _ in range(self._count):
            self._sockets.append(self._open())
        if self._kind == "trickle":
            self._trickler.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        for each in self._sockets:
            each.close()

    def still_open(self) -> int:
        """Return how many connections the server has not closed."""
        return sum(map(_is_open, self._sockets))

    def _open(self) -> socket.socket:
        made = socket.socket()
        if self._kind == "unread":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(TIMEOUT_SECONDS)
        made.connect(self._address)
        text = {"head": _HEAD, "trickle": _HEAD, "body": _BODY}.get(self._kind, "")
        with contextlib.suppress(OSError):
            made.sendall(text.format(**self._words).encode())
            if self._kind == "unread":
                made.setblocking(False)
                made.send(_WHOLE.format(**self._words).encode() * _UNREAD_REQUESTS)
        return made

    def _trickle(self) -> None:
        while not self._over.wait(1):
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.send(b"a")


def _is_open(each: socket.socket) -> bool:
    each.setblocking(False)
    try:
        return bool(each.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def measure(url: str, kind: str, count: int, asks: int) -> dict[str, Any]:
    """Return the milliseconds of ordinary requests during a crowd."""
    times, unanswered = [], 0
    with Crowd(url, kind, count) as crowd:
        time.sleep(1)  # let each of them reach the server
        for _ in range(asks):
            began = time.monotonic()
            try:
                requests.get(url, timeout=TIMEOUT_SECONDS)
            except requests.RequestException:
                unanswered += 1
            times.append((time.monotonic() - began) * 1000)
            if unanswered >= 3:  # it won't get better
                break
        still_open = crowd.still_open()
    return {
        "median_ms": round(statistics.median(times), 1),
        "worst_ms": round(max(times), 1),
        "unanswered": unanswered,
        "asked": len(times),
        "still_open": still_open,
    }


@contextlib.contextmanager
def targets(urls: list[str]) -> Iterator[dict[str, str]]:
    """Yield {name: URL of a document that needs no token}."""
    if urls:
        yield {url: url for url in urls}
        return
    from tests.functional.cloud import embedded_cloud

    with tempfile.TemporaryDirectory() as folder:
        with embedded_cloud(Path(folder) / "state", driver=null.DRIVER) as cloud:
            apis = ("compute", "placement", "image", "network")
            found = {name: f"{cloud.base_url}/{name}/" for name in apis}
            yield found | {"identity": f"{cloud.auth_url.rstrip('/')}/"}


def main() -> int:
    """Measure, print JSON; exit code 1 when an ordinary request was not answered."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", action="append", default=[], help="a running API's document")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--asks", type=int, default=50)
    parser.add_argument("--kind", action="append", choices=KINDS, default=[])
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found: dict[str, Any] = {"connections": given.connections}
    with targets(given.url) as urls:
        for name, url in urls.items():
            alone = measure(url, "silent", 0, given.asks)
            found[name] = {"none": alone} | {
                kind: measure(url, kind, given.connections, given.asks)
                for kind in given.kind or KINDS
            }
    print(json.dumps(found, indent=2))
    rows = [row for part in found.values() if isinstance(part, dict) for row in part.values()]
    return int(any(row["unanswered"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
