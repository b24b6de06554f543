"""The pictures of docs/dashboard.md are those that `python -m tests.browser.pictures` makes."""

from __future__ import annotations

import random
import re
import struct
import zlib
from pathlib import Path

from tests.browser.pictures import MOST_BYTES, MOST_ROWS, NAMES, SHOWN, copy, top
from tests.pages import ROOT


def test_each_is_shown_once_and_is_small() -> None:
    text = (ROOT / "docs" / "dashboard.md").read_text()
    shown = re.findall(r"!\[[^\]]{20,}\]\(pictures/([\w-]+)\.png\)", text)
    assert sorted(shown) == sorted(NAMES)
    assert sorted(one.stem for one in SHOWN.iterdir()) == sorted(NAMES)
    assert all(one.stat().st_size <= MOST_BYTES for one in SHOWN.iterdir())
    assert len(NAMES) <= 8


def png(rows: int, row: bytes) -> bytes:
    """Return a picture of one column of grey for each byte of a row."""
    head = struct.pack(">IIBBBBB", len(row), rows, 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for _ in range(rows)))
    parts = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def test_what_is_too_large_replaces_nothing(tmp_path: Path) -> None:
    made, shown = tmp_path / "made", tmp_path / "shown"
    made.mkdir()
    small = png(2, b"abc")
    for name in NAMES[1:]:
        (made / f"{name}.png").write_bytes(small)
    (made / f"{NAMES[-1]}.png").write_bytes(png(1, random.Random(1).randbytes(2 * MOST_BYTES)))
    assert copy(made, shown) == [
        f"{NAMES[0]}.png was not made",
        f"{NAMES[-1]}.png has more than {MOST_BYTES} bytes",
    ]
    assert not shown.exists()
    for name in NAMES:
        (made / f"{name}.png").write_bytes(small)
    assert copy(made, shown) == []
    assert len(list(shown.iterdir())) == len(NAMES)


def test_the_uppermost_rows_are_kept() -> None:
    assert top(png(MOST_ROWS + 7, b"abc")) == top(png(MOST_ROWS, b"abc"))
