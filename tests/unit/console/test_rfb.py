"""VNC's beginning towards browsers: no password, and nothing before the client spoke."""

from __future__ import annotations

import pytest

from console import rfb
from tests.unit.console.scripted import Scripted


def test_a_client_is_let_in() -> None:
    browser = Scripted(b"RFB 003.008\n", b"\1", b"\1more")
    stream = rfb.greet(browser)
    assert browser.sent == [b"RFB 003.008\n", b"\1\1", bytes(4)]
    assert stream.receive() == b"\1more"


def test_before_3_8_no_result_follows() -> None:
    browser = Scripted(b"RFB 003.007\n\1")
    rfb.greet(browser)
    assert browser.sent == [b"RFB 003.008\n", b"\1\1"]


def test_bytes_come_as_they_come() -> None:
    browser = Scripted(b"RFB", b" 003.0", b"08\n\1\1")
    assert rfb.greet(browser).receive() == b"\1"


@pytest.mark.parametrize(
    "script",
    [(b"RFB 003.003\n",), (b"GET / HTTP/1.1\r\n",), (b"RFB 003.008\n", b"\2"), (b"RFB 003",)],
)
def test_others_are_not(script: tuple[bytes, ...]) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - any
        rfb.greet(Scripted(*script))
