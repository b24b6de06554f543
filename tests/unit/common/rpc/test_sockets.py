"""How much is read at once from a broker."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from amqp.transport import TCPTransport

from common.rpc import sockets


class Socket:
    """Returns the bytes of a stream in these pieces, and counts the calls."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.asked = 0

    def recv(self, count: int) -> bytes:
        self.asked += 1
        if not self._pieces:
            raise TimeoutError
        piece = self._pieces.pop(0)
        if piece[count:]:
            self._pieces.insert(0, piece[count:])
        return piece[:count]

    def sendall(self, data: bytes) -> None:
        raise AssertionError


def frame(payload: bytes) -> bytes:
    return struct.pack(">BHI", 1, 1, len(payload)) + payload + b"\xce"


def transport(*pieces: bytes) -> tuple[Any, Socket]:
    made, socket = TCPTransport("localhost"), Socket(*pieces)
    made.sock = socket
    sockets.reading_ahead(TCPTransport._setup_transport)(made)
    return made, socket


PAYLOADS = [b"method", b"header", b"body" * 100]


def test_a_message_is_received_at_once() -> None:
    made, socket = transport(b"".join(map(frame, PAYLOADS)))
    assert [made.read_frame()[2] for _ in PAYLOADS] == PAYLOADS
    assert socket.asked == 1


@pytest.mark.parametrize("size", [1, 5, 10, 399, 20_000])
def test_it_is_whole_in_whatever_pieces_it_comes(size: int) -> None:
    sent = b"".join(map(frame, [*PAYLOADS, b"large" * 10_000]))
    made, _ = transport(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert [made.read_frame()[2] for _ in range(4)] == [*PAYLOADS, b"large" * 10_000]


def test_what_has_come_of_a_frame_is_kept_when_the_rest_is_late() -> None:
    made, socket = transport(frame(b"first") + frame(b"second")[:9])
    assert made.read_frame()[2] == b"first"
    with pytest.raises(TimeoutError):
        made.read_frame()
    socket._pieces.append(frame(b"second")[9:])
    assert made.read_frame()[2] == b"second"
