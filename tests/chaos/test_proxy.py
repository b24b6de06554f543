"""The proxy before the broker: a cut ends every connection, no answer is mixed up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxy
from tests.functional.waiting import eventually

ROUNDS = 50
CALLERS = 8


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that says back what it hears; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def answer(end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):
            while data := end.recv(65536):
                end.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                end, _ = listener.accept()
                threading.Thread(target=answer, args=(end,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def said(proxy: Proxy, words: bytes) -> bytes:
    """What comes back over a new connection; nothing, where it is cut."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", proxy.port), 10) as end,
    ):
        end.sendall(words)
        return end.recv(len(words), socket.MSG_WAITALL)
    return b""


def test_a_cut_ends_what_there_is_and_refuses_what_comes(echo: int) -> None:
    proxy = Proxy(echo)
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as end:
        end.sendall(b"before")
        assert end.recv(6, socket.MSG_WAITALL) == b"before"
        proxy.cut()
        with contextlib.suppress(ConnectionResetError):
            assert end.recv(1) == b""
    assert said(proxy, b"while") == b""
    proxy.mend()
    assert said(proxy, b"after") == b"after"
    proxy.close()
    eventually(lambda: not proxy._ends)


def test_no_connection_hears_what_another_one_said(echo: int) -> None:
    proxy = Proxy(echo)
    answers: list[tuple[bytes, bytes]] = []

    def call(number: int) -> None:
        for turn in range(ROUNDS):
            words = b"%06d-%06d" % (number, turn)
            answers.append((words, said(proxy, words)))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for one in callers:
        one.start()
    for _ in range(ROUNDS):
        proxy.cut()
        proxy.mend()
    for one in callers:
        one.join()
    assert len(answers) == CALLERS * ROUNDS
    assert all(back == words or words.startswith(back) for words, back in answers)
    assert said(proxy, b"still") == b"still"
    proxy.close()
