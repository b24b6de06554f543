"""Plain websocket clients of the console proxy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.sync.client import connect

from common.streams import Exactly, WebSocketStream
from tests.functional.cloud import EmbeddedCloud

WIDTH, HEIGHT = 640, 400


def console_url(
    cloud: EmbeddedCloud, server: Any, protocol: str = "vnc", kind: str = "novnc"
) -> str:
    """Ask for a console; return its URL."""
    answer = cloud.connection().compute.post(
        f"/servers/{server.id}/remote-consoles",
        json={"remote_console": {"protocol": protocol, "type": kind}},
        microversion="2.6",
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["remote_console"]["url"])


def websocket_url(url: str) -> str:
    """The websocket behind a console's URL, as noVNC derives it."""
    parts = urlsplit(url)
    if parts.scheme in ("ws", "wss"):
        return url
    path = parse_qs(parts.query)["path"][0]
    return f"{parts.scheme.replace('http', 'ws')}://{parts.netloc}/{path}"


@contextlib.contextmanager
def visiting(url: str, **more: Any) -> Iterator[Exactly]:
    """Open a console as a plain client."""
    connection = connect(
        websocket_url(url), compression=None, legacy=True, max_size=None, proxy=None, **more
    )
    stream = Exactly(WebSocketStream(connection))
    try:
        yield stream
    finally:
        stream.close()


def enter_screen(visitor: Exactly) -> str:
    """Go through VNC's beginning without a password; return the screen's name."""
    assert visitor.exactly(12) == b"RFB 003.008\n"
    visitor.send(b"RFB 003.008\n")
    assert visitor.exactly(2) == b"\1\1"
    visitor.send(b"\1")
    assert visitor.exactly(4) == bytes(4)
    visitor.send(b"\1")
    start = visitor.exactly(24)
    assert (int.from_bytes(start[:2], "big"), int.from_bytes(start[2:4], "big")) == (WIDTH, HEIGHT)
    return visitor.exactly(int.from_bytes(start[20:], "big")).decode()


def picture(visitor: Exactly) -> bytes:
    """Ask for the whole picture; return its bytes."""
    size = WIDTH.to_bytes(2, "big") + HEIGHT.to_bytes(2, "big")
    visitor.send(b"\3\0" + bytes(4) + size)
    head = visitor.exactly(16)
    assert head[:4] == b"\0\0\0\1"
    return visitor.exactly(WIDTH * HEIGHT * 4)
