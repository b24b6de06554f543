from __future__ import annotations

import io
from typing import Any

import falcon
import pytest
from falcon import testing

from common import web
from common.errors import Invalid, TooLarge


def a_request(body: bytes, *, chunked: bool) -> falcon.Request:
    environ: dict[str, Any] = testing.create_environ(method="POST", body=body)
    if chunked:
        del environ["CONTENT_LENGTH"]
        environ |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        environ["wsgi.input"] = io.BytesIO(body)
    return falcon.Request(environ)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_is_read_however_it_comes(chunked: bool) -> None:
    assert web.json_body(a_request(b'{"a": 1}', chunked=chunked)) == {"a": 1}
    with pytest.raises(TooLarge):
        web.json_body(a_request(b'"' + b"x" * 99 + b'"', chunked=chunked), limit=100)
    with pytest.raises(Invalid, match="Malformed request body"):
        web.json_body(a_request(b"{", chunked=chunked))
