"""Where a request ends, however its bytes come."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.incoming import BODY_LIMIT, HEAD_LIMIT, HeadTooLarge, Incoming, Request

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n3;name=value\r\n\r\n\r\r\n0\r\n\r\n"
)
TRAILERS = b"PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n"
WHOLE = (GET, POST, CHUNKS, TRAILERS)


def requests_of(*pieces: bytes) -> list[Request]:
    incoming, found = Incoming(), []
    for piece in pieces:
        incoming.feed(piece)
        while (request := incoming.next()) is not None:
            found.append(request)
    return found


@given(st.lists(st.sampled_from(WHOLE), min_size=1, max_size=4), st.data())
def test_requests_are_found_however_they_are_cut(wanted: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(wanted)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    ends = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(ends)]
    assert [request.data for request in requests_of(*pieces)] == wanted
    assert not any(request.last for request in requests_of(*pieces))


@pytest.mark.parametrize("whole", WHOLE)
def test_no_part_of_a_request_is_a_request(whole: bytes) -> None:
    incoming = Incoming()
    for byte in whole[:-1]:
        incoming.feed(bytes([byte]))
        assert incoming.next() is None
    incoming.feed(whole[-1:])
    assert incoming.next() == Request(whole, last=False)
    assert incoming.is_empty


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: -5",
        b"Content-Length: +5",
        b"Content-Length: 5, 5",
        b"Content-Length: \xc2\xb2",
        b"Content-Length: " + b"9" * 5000,
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Content-Length: %d" % (BODY_LIMIT + 1),
    ],
)
def test_nothing_follows_a_request_whose_end_is_not_sure(header: bytes) -> None:
    head = b"POST / HTTP/1.1\r\n" + header + b"\r\n\r\n"
    assert requests_of(head + GET) == [Request(head, last=True)]


@pytest.mark.parametrize("size", [b"x", b"-1", b"", b" 5", b"0x5", b"f" * 9, b"5 5", b"1" * 9000])
def test_a_bad_chunk_ends_the_connection(size: bytes) -> None:
    text = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nhello"
    assert requests_of(text) == [Request(text, last=True)]


def test_a_body_of_many_chunks_is_not_waited_for_for_ever() -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = requests_of(head, *[b"1\r\nx\r\n"] * (BODY_LIMIT // 6 + 2))
    assert [request.last for request in found[:1]] == [True]


def test_a_head_has_a_limit() -> None:
    incoming = Incoming()
    incoming.feed(b"GET / HTTP/1.1\r\nA: " + b"a" * (HEAD_LIMIT - 30))
    assert incoming.next() is None
    incoming.feed(b"a" * 100)
    with pytest.raises(HeadTooLarge):
        incoming.next()


def test_who_waits_for_continue_is_known_without_the_parser() -> None:
    head = b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"
    incoming = Incoming()
    incoming.feed(head)
    assert incoming.next() is None
    assert incoming.expects_continue
    incoming.feed(b"hello")
    without = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    assert incoming.next() == Request(without, last=False)
    incoming.feed(head + b"hello")
    assert incoming.next() == Request(without, last=False)
    assert not incoming.expects_continue


def test_line_breaks_between_requests_are_left_out() -> None:
    assert [each.data for each in requests_of(b"\r\n" + GET + b"\r\n\r\n" + POST)] == [GET, POST]
