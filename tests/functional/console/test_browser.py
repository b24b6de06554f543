"""The page in a real browser: noVNC shows the picture of the guest."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

pytest.importorskip("websockets")

from websockets.sync.client import connect

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.console.visits import console_url

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed"),
]

#: the bars of the simulated screen
BARS = {(255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0)}


class Page:
    """A browser's page, by its debugging protocol."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._connection.recv(60))
            if answer.get("id") == self._number:
                return dict(answer["result"])

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        found = self.ask(
            "Runtime.evaluate",
            expression=f"(document.querySelector('{selector}') || {{}}).textContent || ''",
        )
        return str(found["result"]["value"])

    def colours(self) -> set[tuple[int, ...]]:
        """Return the colours that it shows."""
        return pixels(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def browsing(folder: Path) -> Iterator[Page]:
    """Run a browser with one empty page."""
    words = [
        *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu"),
        *("--window-size=800,600", "--remote-debugging-port=0"),
        *(f"--user-data-dir={folder}", "about:blank"),
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            ready = folder / "DevToolsActivePort"
            eventually(lambda: ready.is_file() and ready.read_text().count("\n"), 120)
            port = ready.read_text().split()[0]
            pages = requests.get(f"http://127.0.0.1:{port}/json/list", timeout=60).json()
            url = next(one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page")
            with connect(url, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            process.terminate()


def test_a_browser_shows_the_picture(
    three_nodes: EmbeddedCloud, server: Any, tmp_path: Path
) -> None:
    with browsing(tmp_path / "profile") as page:
        page.ask("Page.navigate", url=console_url(three_nodes, server))
        eventually(lambda: page.text("#status") == "noVNC: connected", 120)
        eventually(lambda: page.colours() >= BARS, 60)
        assert (
            "token"
            not in page.ask("Runtime.evaluate", expression="location.href")["result"]["value"]
        )


def pixels(png: bytes) -> set[tuple[int, ...]]:
    """Return the colours of a PNG with 8 bits a channel and no interlace."""
    offset, packed, width, height, channels = 8, b"", 0, 0, 0
    while offset < len(png):
        size = int.from_bytes(png[offset : offset + 4], "big")
        kind, content = png[offset + 4 : offset + 8], png[offset + 8 : offset + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", content[:10])
            assert depth == 8
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += content
        offset += size + 12
    data, stride = zlib.decompress(packed), width * channels
    before, found = bytearray(stride), set()
    for row in range(height):
        start = row * (stride + 1)
        line = _unfiltered(
            data[start], bytearray(data[start + 1 : start + 1 + stride]), before, channels
        )
        found |= {tuple(line[at : at + 3]) for at in range(0, stride, channels)}
        before = line
    return found


def _unfiltered(kind: int, line: bytearray, above: bytearray, channels: int) -> bytearray:
    for at in range(len(line)):
        left = line[at - channels] if at >= channels else 0
        corner = above[at - channels] if at >= channels else 0
        up = above[at]
        guess = left + up - corner
        paeth = min((left, up, corner), key=lambda one: abs(guess - one))
        line[at] = (line[at] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
    return line
