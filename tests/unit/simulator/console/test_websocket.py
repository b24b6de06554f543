"""The simulator's websocket takes what Proxmox VE takes."""

from __future__ import annotations

import io
import socket

import pytest

from simulator.console.websocket import Gone, WebSocket, accept_key


def masked(content: bytes, first: int = 0x82, mask: bytes = b"\1\2\3\4") -> bytes:
    hidden = bytes(byte ^ mask[index % 4] for index, byte in enumerate(content))
    count = len(content)
    length = bytes([0x80 | count]) if count < 126 else b"\xfe" + count.to_bytes(2, "big")
    return bytes([first]) + length + mask + hidden


def reading(data: bytes) -> WebSocket:
    with socket.socket() as ours:
        return WebSocket(ours, io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]


def test_the_accept_key_of_the_standard() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_frames_are_a_stream() -> None:
    peer = reading(masked(b"ab") + masked(b"cd\nef", 0x81) + masked(b"x" * 300))
    assert peer.exactly(3) == b"abc"
    assert peer.line() == b"d"
    assert peer.exactly(302) == b"ef" + b"x" * 300
    with pytest.raises(Gone):
        peer.receive()


@pytest.mark.parametrize(
    "data",
    [b"\x82\x02ab", masked(b"part", 0x02), masked(b"", 0x88), masked(b"odd", 0xC2), b"\x82"],
    ids=["unmasked", "fragment", "close", "extension", "cut"],
)
def test_others_are_gone(data: bytes) -> None:
    with pytest.raises(Gone):
        reading(data).receive()
