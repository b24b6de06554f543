"""Bodies: read with a limit, and refused where others would stumble over them."""

from __future__ import annotations

import io
from typing import Any

import falcon
import orjson
import pytest
from falcon import testing
from gunicorn.http.errors import InvalidChunkSize

from common.errors import Invalid, TooLarge
from web import bodies


def a_request(body: bytes, *, chunked: bool) -> falcon.Request:
    environ: dict[str, Any] = testing.create_environ(method="POST", body=body)
    if chunked:
        del environ["CONTENT_LENGTH"]
        environ |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        environ["wsgi.input"] = io.BytesIO(body)
    return falcon.Request(environ)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_is_read_however_it_comes(chunked: bool) -> None:
    assert bodies.json_body(a_request(b'{"a": 1}', chunked=chunked)) == {"a": 1}
    with pytest.raises(TooLarge):
        bodies.json_body(a_request(b'"' + b"x" * 99 + b'"', chunked=chunked), limit=100)
    with pytest.raises(Invalid, match="Malformed request body"):
        bodies.json_body(a_request(b"{", chunked=chunked))


def nested(levels: int, inner: object = 1) -> object:
    for level in range(levels):
        inner = [inner] if level % 2 else {"a": inner}
    return inner


@pytest.mark.parametrize("levels", [65, 260, 488, 900])
def test_what_is_nested_deep_is_refused(levels: int) -> None:
    text = b"[" * levels + b"]" * levels
    with pytest.raises(Invalid, match="64 levels deep"):
        bodies.json_body(a_request(text, chunked=False))


def test_what_is_nested_within_reason_passes() -> None:
    bodies.check(nested(64))


@pytest.mark.parametrize("text", ["1e30", "-1e30", "9223372036854775808", "1" * 40])
def test_numbers_no_database_takes_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="too large"):
        bodies.json_body(a_request(f'{{"a": [{text}]}}'.encode(), chunked=False))


def test_numbers_up_to_64_bits_pass() -> None:
    for number in (2**63 - 1, -(2**63), 0, 0.5, True, None):
        bodies.check([number])
    bodies.check(1e30, large_numbers=True)


@pytest.mark.parametrize("value", [{"a": "\0"}, {"\0": 1}, ["x", ["\0"]], "\0"])
def test_a_null_character_is_refused(value: object) -> None:
    with pytest.raises(Invalid, match="null character"):
        bodies.json_body(a_request(orjson.dumps(value), chunked=False))


@pytest.mark.parametrize("error", [OSError(), ConnectionResetError(), InvalidChunkSize(b"zz")])
def test_a_body_that_cannot_be_read_is_refused(error: Exception) -> None:
    class Broken(io.BytesIO):
        def read(self, *_size: object) -> bytes:
            raise error

    request = a_request(b"x", chunked=True)
    request.env["wsgi.input"] = Broken()
    with pytest.raises(Invalid, match="can't be read"):
        bodies.json_body(request)
