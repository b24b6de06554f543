"""VNC's beginning towards Proxmox VE: the DES answer, refusals, what is left for the client."""

from __future__ import annotations

import pytest

from compute.hypervisor.proxmox.console import terminal, vnc
from tests.unit.console.scripted import Scripted

CHALLENGE = bytes(range(16))
BEGIN = b"RFB 003.008\n"


def test_des_by_a_known_vector() -> None:
    # The published vector of DES for the key 0123456789abcdef, whose bytes are reversed here.
    key = bytes.fromhex("0123456789abcdef")
    password = bytes(int(f"{byte:08b}"[::-1], 2) for byte in key).decode("latin-1")
    assert all(ord(one) < 256 for one in password)
    plain = bytes.fromhex("4e6f772069732074")
    answer = vnc.des(password.encode("latin-1"), plain)
    assert answer.hex() == "3fa40e8a984d4815"


def test_only_eight_bytes_of_a_password_count() -> None:
    assert vnc.response("12345678", CHALLENGE) == vnc.response("123456789", CHALLENGE)
    assert vnc.response("1234567", CHALLENGE) != vnc.response("12345678", CHALLENGE)


def test_the_server_lets_us_in() -> None:
    server = Scripted(BEGIN, b"\1\2", CHALLENGE, bytes(4), b"rest")
    stream = vnc.authenticate(server, "secret12")
    assert server.sent == [BEGIN, b"\2", vnc.response("secret12", CHALLENGE)]
    assert stream.receive() == b"rest"


def test_a_server_without_a_password() -> None:
    server = Scripted(BEGIN, b"\1\1", bytes(4))
    vnc.authenticate(server, "secret12")
    assert server.sent == [BEGIN, b"\1"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ((b"RFB 003.003\n",), "speak RFB 3.8"),
        ((BEGIN, b"\1\x13"), "no authentication"),
        ((BEGIN, b"\0", b"\0\0\0\4busy"), "busy"),
        ((BEGIN, b"\1\2", CHALLENGE, b"\0\0\0\1", b"\0\0\0\6failed"), "failed"),
    ],
)
def test_refusals(script: tuple[bytes, ...], why: str) -> None:
    with pytest.raises(vnc.VncRefusedError, match=why):
        vnc.authenticate(Scripted(*script), "secret12")


def test_an_early_end() -> None:
    with pytest.raises(OSError, match="early"):
        vnc.authenticate(Scripted(BEGIN, b"\1\2", b"short"), "secret12")


def test_a_terminal_frames_what_is_typed() -> None:
    proxy = Scripted(b"OKlogin: ", b"more")
    line = terminal.enter(proxy, "agent@pve!t", "PVEVNC:X")
    assert proxy.sent == [b"agent@pve!t:PVEVNC:X\n"]
    assert (line.receive(), line.receive(), line.receive()) == (b"login: ", b"more", None)
    line.send("né\r".encode())
    assert proxy.sent[-1] == b"0:4:n\xc3\xa9\r"


def test_a_terminal_that_refuses() -> None:
    with pytest.raises(terminal.TerminalRefusedError):
        terminal.enter(Scripted(b"NO"), "u", "t")
