"""Reads JSON bodies of requests, with limits.

What JSON allows but Python, a schema or a database doesn't is refused here for all operations:
deep nesting, integers beyond 64 bits, U+0000.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import falcon
import orjson

from common.errors import Invalid, TooLarge

#: Nova's default (oslo.middleware ``max_request_body_size``), bytes
MAX_BODY = 114_688

DEEPEST = 64
"""The maximum depth of nesting. Recursive code fails at some hundreds."""

_LARGEST = 2**63

MALFORMED = "Malformed request body"


def in_chunks(req: falcon.Request) -> bool:
    """Return whether the request has a chunked body, whose length isn't known."""
    return "HTTP_TRANSFER_ENCODING" in req.env and bool(req.env.get("wsgi.input_terminated"))


def read(req: falcon.Request, limit: int = MAX_BODY) -> bytes:
    """Return the request's body.

    Raises TooLarge over ``limit`` bytes, Invalid when it can't be read to its end.
    """
    length = req.content_length
    if length is not None and length > limit:
        raise TooLarge("Request is too large.")
    # A chunked body has no length, but the server knows its end.
    stream = req.env["wsgi.input"] if in_chunks(req) else req.bounded_stream
    try:
        raw: bytes = stream.read(limit + 1)
    except Exception as error:
        # Malformed chunks or trailers, a lost connection: each server has its own errors.
        raise Invalid(f"{MALFORMED}: it can't be read.") from error
    if len(raw) > limit:
        raise TooLarge("Request is too large.")
    return raw


def pieces(req: falcon.Request, size: int) -> Iterator[bytes]:
    """Yield the request's body in pieces of this size, the last one may be shorter.

    Raises Invalid when it can't be read to its end.
    """
    stream = req.env["wsgi.input"] if in_chunks(req) else req.bounded_stream
    left = None if in_chunks(req) else req.content_length or 0
    while left is None or left > 0:
        try:
            data: bytes = stream.read(size if left is None else min(size, left))
        except Exception as error:
            # As in `read`.
            raise Invalid(f"{MALFORMED}: it can't be read.") from error
        if not data:
            break
        left = None if left is None else left - len(data)
        yield data
    if left:
        raise Invalid(f"{MALFORMED}: it is shorter than it says.")


def json_body(req: falcon.Request, limit: int = MAX_BODY) -> Any:
    """Return the request's JSON value.

    Raises TooLarge over ``limit`` bytes, Invalid unless it is JSON within the limits.
    """
    raw = read(req, limit)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Invalid(MALFORMED) from error
    check(value)
    return value


def check(value: Any, *, large_numbers: bool = False) -> None:
    """Raise Invalid if a JSON value exceeds the limits; ``large_numbers``: allow any float."""
    waiting: list[tuple[Any, int, str]] = [(value, 0, "")]
    while waiting:
        part, depth, name = waiting.pop()
        if isinstance(part, str):
            if "\0" in part:
                raise Invalid(f"{MALFORMED}: it holds a null character.")
        elif isinstance(part, dict | list):
            if depth == DEEPEST:
                raise Invalid(f"{MALFORMED}: it is nested more than {DEEPEST} levels deep.")
            waiting += _inside(part, depth + 1, name)
        elif isinstance(part, int | float) and _is_too_large(part, large_numbers):
            raise Invalid(f"{MALFORMED}: the number {name} is too large.")


def _inside(
    part: dict[str, Any] | list[Any], depth: int, name: str
) -> Iterator[tuple[Any, int, str]]:
    """Return the parts of an array or an object; the items of an array have its name."""
    if isinstance(part, list):
        for each in part:
            yield each, depth, name
        return
    for key, each in part.items():
        yield key, depth, ""
        yield each, depth, key[:64]


def _is_too_large(number: float, large_numbers: bool) -> bool:
    # A float without a fraction is an integer to a schema.
    limited = isinstance(number, int) or not large_numbers
    return limited and not -_LARGEST <= number < _LARGEST
