"""Makes the pictures that docs/dashboard.md shows, by the browser tests.

python -m tests.browser.pictures
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.unit.sources import ROOT

MADE = ROOT / ".tox" / "screenshots"
SHOWN = ROOT / "docs" / "pictures"
MOST_BYTES, MOST_ROWS = 120_000, 720
NAMES = (
    *("overview-admin-light", "servers-light", "servers-create-light", "servers-server-light"),
    *("networks-dark", "explain-what-server-light", "nodes-pve-light", "servers-390"),
)
"""A page, and how it is looked at: light, dark, or on a phone."""


def make() -> None:
    """Have the browser tests look at these pages."""
    looks = {name.rpartition("-")[0] for name in NAMES}
    test = "tests/browser/test_pages.py::test_every_page_is_accessible"
    words = [f"{test}[{one}]" for one in sorted(looks)]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "long or not long", *words]
    subprocess.run(command, cwd=ROOT, check=True)


def copy(made: Path, shown: Path) -> list[str]:
    """Replace the pictures; return what is wrong with those that were made."""
    files = {name: made / f"{name}.png" for name in NAMES}
    wrong = [f"{one.name} was not made" for one in files.values() if not one.exists()]
    cut = {name: top(one.read_bytes()) for name, one in files.items() if one.exists()}
    wrong += [
        f"{name}.png has more than {MOST_BYTES} bytes"
        for name, data in cut.items()
        if len(data) > MOST_BYTES
    ]
    if not wrong:
        shutil.rmtree(shown, ignore_errors=True)
        shown.mkdir(parents=True)
        for name, data in cut.items():
            (shown / f"{name}.png").write_bytes(data)
    return wrong


def top(png: bytes) -> bytes:
    """Return the uppermost rows of a picture: a row depends on those above it alone."""
    chunks = list(_chunks(png))
    [head] = [data for kind, data in chunks if kind == b"IHDR"]
    width, height = struct.unpack(">II", head[:8])
    rows = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    kept = min(height, MOST_ROWS)
    body = zlib.compress(rows[: len(rows) // height * kept], 9)
    parts = [
        (b"IHDR", struct.pack(">II", width, kept) + head[8:]),
        *((b"IDAT", body), (b"IEND", b"")),
    ]
    return _SIGNATURE + b"".join(_chunk(*one) for one in parts)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        [size] = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    make()
    raise SystemExit("\n".join(copy(MADE, SHOWN)))
