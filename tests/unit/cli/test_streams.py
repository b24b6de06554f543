"""Output in an encoding that has not all letters."""

from __future__ import annotations

import io
import sys

import pytest

from cli.streams import write_anything


def test_what_the_encoding_has_not_is_written_as_an_escape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    write_anything()
    sys.stdout.write("1 × 3 → Größe\n")
    sys.stdout.flush()
    assert raw.getvalue() == b"1 \\xd7 3 \\u2192 Gr\\xf6\\xdfe\n"
