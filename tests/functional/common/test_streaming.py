"""Bodies of any length under the worker of all APIs, by clients that know nothing but sockets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.common.served import THREADS, Worker
from tests.functional.common.test_serving import Served, rest_of, running
from tests.functional.waiting import eventually
from web import loop

DATA = os.urandom(3_000_000)
SUMMARY = f"{len(DATA)} {hashlib.sha256(DATA).hexdigest()}".encode()
HEAD = b"PUT /long HTTP/1.1\r\nHost: test\r\nContent-Type: application/octet-stream\r\n%s\r\n"
WITH_LENGTH = HEAD % (b"Content-Length: %d\r\n" % len(DATA))
IN_CHUNKS = HEAD % b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with running(None) as found:
        yield found


def chunks(data: bytes, size: int) -> bytes:
    cut = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in cut)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (WITH_LENGTH, DATA),
        (WITH_LENGTH + DATA[:10], DATA[10:]),
        (IN_CHUNKS, chunks(DATA, 65_536) + b"0\r\n\r\n"),
        (IN_CHUNKS, chunks(DATA, 999_999) + b"0;a=b\r\nA: b\r\n\r\n"),
        (IN_CHUNKS + b"5", b"\r\n" + DATA[:5] + b"\r\n" + chunks(DATA[5:], 333) + b"0\r\n\r\n"),
    ],
    ids=["length", "length in the head's packet", "chunks", "large chunks", "small chunks"],
)
def test_a_body_of_any_length_is_read_to_its_end(
    served: Served, first: bytes, then: bytes
) -> None:
    with served.connect(first) as connection:
        connection.sendall(then + b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert SUMMARY in answer
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_continue_is_said_when_the_body_is_read(served: Served) -> None:
    expecting = WITH_LENGTH.replace(b"Host", b"Expect: 100-continue\r\nHost")
    with served.connect(expecting) as connection:
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(DATA)
        assert SUMMARY in rest_of(connection)
    with served.connect(expecting.replace(b"/long", b"/refused")) as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 200 OK")


def test_who_sends_what_nobody_reads_gets_the_answer(served: Served) -> None:
    with served.connect(WITH_LENGTH.replace(b"/long", b"/refused")) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(DATA)
        assert rest_of(connection).startswith(b"HTTP/1.1 200 OK")


POST = b"POST /refused HTTP/1.1\r\nHost: test\r\n%s\r\n"
LONG = [
    (POST % (b"Content-Length: %d\r\n" % len(DATA)), DATA),
    (POST % (b"Content-Length: %d\r\nExpect: 100-continue\r\n" % len(DATA)), DATA),
    (POST % b"Transfer-Encoding: chunked\r\n", chunks(DATA, 65_536) + b"0\r\n\r\n"),
    (WITH_LENGTH.replace(b"application/octet-stream", b"text/plain"), DATA),
    (WITH_LENGTH.replace(b"/long", b"/refused"), DATA),
    (IN_CHUNKS.replace(b"/long", b"/refused"), chunks(DATA, 65_536) + b"0\r\n\r\n"),
]


@pytest.mark.parametrize(
    ("head", "body"),
    LONG,
    ids=["length", "expecting", "chunks", "another type", "stream", "stream in chunks"],
)
def test_an_answer_to_what_is_not_read_closes_and_says_so(
    served: Served, head: bytes, body: bytes
) -> None:
    """Who sends all of it first, takes its time, and then sends another request on it."""
    with served.connect(head) as connection:
        for at in range(0, len(body), 1_000_000):
            # Longer in all than the time to read the end of an answer.
            time.sleep(loop.CLOSING_SECONDS / 3)
            connection.sendall(body[at : at + 1_000_000])
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /next HTTP/1.1\r\nHost: test\r\n\r\n")
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"\r\nConnection: close\r\n" in answer


def test_a_body_that_never_ends_is_not_read_for_ever(served: Served) -> None:
    with served.connect(LONG[0][0]) as connection, contextlib.suppress(ConnectionError):
        for _ in range(100):
            connection.sendall(DATA[:20_000])  # gives a client its time again
            time.sleep(Worker.draining_seconds / 10)
        pytest.fail("all of it was read")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (WITH_LENGTH + DATA[:-1], b"lost: The client is gone or too slow."),
        (IN_CHUNKS + b"5\r\nhel", b"lost: The client is gone or too slow."),
        (IN_CHUNKS + b"5\r\nhello!!\r\n", b"lost: A chunk is longer than it says."),
        (IN_CHUNKS + b"five\r\n", b"lost: The size of a chunk is no number."),
        (IN_CHUNKS + b"5" * 9000, b"lost: The line of a chunk is too long."),
        (IN_CHUNKS + b"0\r\n" + b"A: b\r\n" * 200, b"lost: There are too many trailers."),
    ],
)
def test_a_body_without_its_end_is_reported(served: Served, sent: bytes, why: bytes) -> None:
    with served.connect(sent) as connection:
        assert why in rest_of(connection)


def test_bytes_that_trickle_win_no_time_here_either(served: Served) -> None:
    with served.connect(WITH_LENGTH) as connection:
        connection.settimeout(Worker.stream_seconds / 10)
        answer = b""
        for _ in range(100):
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"a")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(65536)
                break
    assert b"too slow" in answer


def test_streams_keep_nobody_else_from_being_answered(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connect(WITH_LENGTH)) for _ in range(Worker.streams)]
        for _ in range(THREADS + 1):
            assert served.ask("/other")["path"] == "/other"
        with served.connect(WITH_LENGTH) as late:
            answer = rest_of(late)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"uploads" in answer
        crowd[0].close()
        for each in crowd[1:]:
            each.sendall(DATA)
            assert SUMMARY in rest_of(each)
    with served.connect(WITH_LENGTH + DATA) as again:
        assert SUMMARY in rest_of(again)


def test_a_file_is_sent_by_the_loop_to_many_at_a_time(served: Served, tmp_path: Path) -> None:
    """More than threads; some of them slow, one of them gone, and the connections stay open."""
    file = tmp_path / "data"
    file.write_bytes(DATA * 4)
    asked = f"GET /file{file} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connect(asked)) for _ in range(3 * THREADS)]
        crowd.pop().close()
        assert served.ask("/other")["path"] == "/other"
        found = [b""] * len(crowd)
        for read in range(1, 21):
            # A part of each in turns: none waits so long that it is given up as too slow.
            for at, each in enumerate(crowd):
                found[at] = _received(each, len(DATA) * 4 * read // 20, found[at])
        for each, answer in zip(crowd, found, strict=True):
            head, _, data = answer.partition(b"\r\n\r\n")
            assert (b"Connection: close" in head, data == DATA * 4) == (False, True)
            each.sendall(b"GET /again HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            assert b'"/again"' in rest_of(each)


def _received(connection: socket.socket, length: int, found: bytes = b"") -> bytes:
    """The head of an answer, and as much of its body; `found` was read before."""
    while len(found.partition(b"\r\n\r\n")[2]) < length:
        data = connection.recv(1 << 20)
        assert data, len(found)
        found += data
    return found


def test_a_file_is_closed_when_it_is_sent(served: Served, tmp_path: Path) -> None:
    """Not when its connection gets another request, or is closed."""
    file = tmp_path / "data"
    file.write_bytes(DATA)
    asked = f"GET /file{file} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    with served.connect(asked) as connection:
        assert _received(connection, len(DATA)).endswith(DATA[-100:])
        eventually(lambda: str(file) not in _open_files(), 1.0, 0.02)


def _open_files() -> str:
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return "\n".join(found)
