"""A WSGI layer before Keystone: refuses what Keystone fails on, and answers its failures.

Keystone lets some errors of a request through as its own: text where it reads a number, JSON of
hundreds of levels, a `Host` that is none. The server then answers 500 in HTML. Such requests are
refused here with 400, in the form of Keystone's errors; what fails inside nevertheless is answered
500 in that form too, and its request ID leads to the traceback in the log.
"""

from __future__ import annotations

import contextlib
import http
import io
import logging
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import falcon
import orjson
from oslo_utils import timeutils

from common import ids
from common.digits import number
from common.errors import Invalid, MicronovaError, TooLarge
from identity.errors import TooManyLogins
from web import bodies, proxies, queries

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOG = logging.getLogger("micronova.identity.guard")

LONGEST_ID = 255
"""Characters of the longest column that a part of a path is looked up in."""

NUMBERS = frozenset({"limit"})
"""Query parameters that Keystone reads as numbers."""

TIMES = frozenset({"password_expires_at", "since", "expires_at"})
"""Query parameters and members of bodies that Keystone reads as times."""

TEXTS = frozenset({"legacy_endpoint_id"})
"""Members of bodies that Keystone writes into a text column without a look."""

_LOGIN_TEXTS = frozenset({"id", "name", "password", "passcode", "secret"})
_LOGIN_OBJECTS = frozenset({"user", "domain"})

_MOST = 2**63 - 1
_ID = re.compile(r"([\w.]*[._])?id|marker")
_SLASHES = re.compile("//+")
_COMPARISON = re.compile(r"[a-z]+:")
"""What may stand before a time in a query."""
_FORMS = ("/v3/OS-OAUTH2/",)
"""Paths whose bodies aren't JSON."""

_NEEDED = {"/v3/projects": "project", "/v3/services": "service"}
"""What bodies of a POST must have, by path, of those whose schemas don't say so."""

_FAILED = "An unexpected error prevented the server from fulfilling your request."


class Guard:
    """WSGI layer: passes to Keystone only what it can process."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            check(environ)
        except MicronovaError as error:
            status = 413 if isinstance(error, TooLarge) else 400
            return _answer(environ, start_response, status, str(error))
        try:
            return self._app(environ, start_response)
        except TooManyLogins as error:
            later = ("Retry-After", str(error.details["seconds"]))
            return _answer(environ, start_response, 429, error.message, later)
        except Exception:
            request_id = _request_id(environ)
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
            LOG.exception("%s %s %r failed in Keystone", request_id, method, path)
            return _answer(environ, start_response, 500, f"{_FAILED} Request: {request_id}.")


def check(environ: WSGIEnvironment) -> None:
    """Raise Invalid or TooLarge unless Keystone can process a request; keep its body for it."""
    host = environ.get("HTTP_HOST")
    if host and not proxies.is_host(host):
        raise Invalid("The Host header is not a host.")
    if not ids.is_request_id(environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")):
        environ.pop("HTTP_X_OPENSTACK_REQUEST_ID", None)  # Keystone's form takes other letters
    # Keystone would redirect, and fails where it has refused the request before that.
    environ["PATH_INFO"] = _SLASHES.sub("/", environ.get("PATH_INFO", ""))
    _check_path(environ["PATH_INFO"])
    _check_query(environ.get("QUERY_STRING", ""))
    _check_body(environ)


def _check_path(raw: str) -> None:
    """Check a path as WSGI gives it: each byte a character."""
    path = _readable("path", raw.encode("latin-1"))
    if any(len(part) > LONGEST_ID for part in path.split("/")):
        raise Invalid(f"A part of the path is longer than {LONGEST_ID} characters.")


def _check_query(raw: str) -> None:
    for name, value in queries.pairs(raw, errors="surrogateescape"):
        for text in (name, value):
            _readable("query string", text.encode("utf-8", "surrogateescape"))
        # Keystone treats a parameter without a value as absent.
        if name in NUMBERS and value and number(value, _MOST) is None:
            raise Invalid(f"Query parameter {name} is not a number.")
        if _ID.fullmatch(name) and len(value) > LONGEST_ID:
            raise Invalid(f"Query parameter {name} is longer than {LONGEST_ID} characters.")
        _check_time(name, value)


def _check_time(name: str, value: object) -> None:
    """Raise Invalid for a time that is of no year in UTC; Keystone refuses what is no time."""
    if name not in TIMES or not isinstance(value, str):
        return
    with contextlib.suppress(ValueError):
        at = timeutils.parse_isotime(_COMPARISON.sub("", value, count=1))
        try:
            timeutils.normalize_time(at)
        except (OverflowError, ValueError) as error:
            raise Invalid(f"{name} is a time of no year in UTC.") from error


def _readable(where: str, raw: bytes) -> str:
    """Return the text that bytes are. Raises Invalid when they aren't printable text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"The {where} is not UTF-8.") from error
    if any(character < " " or character == "\x7f" for character in text):
        raise Invalid(f"The {where} holds a control character.")
    return text


def _check_body(environ: WSGIEnvironment) -> None:
    """Check the body, and put in its place what Keystone can read again."""
    if environ.get("PATH_INFO", "").startswith(_FORMS):
        return
    try:
        raw = bodies.read(falcon.Request(environ))
    except falcon.HTTPError as error:
        raise Invalid(f"{bodies.MALFORMED}: it can't be read.") from error
    environ["wsgi.input"] = io.BytesIO(raw)
    environ["CONTENT_LENGTH"] = str(len(raw))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    kind = environ.get("CONTENT_TYPE", "")
    # Keystone refuses other types itself, and takes none for JSON.
    if raw and (not kind or "json" in kind.lower()):
        value = _json(raw)
        bodies.check(value)
        for name, each in _members(value):
            _check_time(name, each)
            _check_kind(name, each, TEXTS)
        _check_login(value)
        _require_member(environ, value)
    if not raw:
        _require_member(environ, {})


def _require_member(environ: WSGIEnvironment, value: Any) -> None:
    """Check what Keystone's schemas leave out. An empty body is an empty object to it."""
    needed = _NEEDED.get(environ["PATH_INFO"].rstrip("/"))
    if needed is None or environ["REQUEST_METHOD"] != "POST" or not isinstance(value, dict):
        return
    if needed not in value:
        raise Invalid(f"'{needed}' is a required property")


def _check_login(value: Any) -> None:
    """Check what Keystone's schema of a login leaves out: all methods but password and token."""
    for name in ("auth", "identity"):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        return
    for method, given in value.items():
        if method == "methods":
            continue
        if not isinstance(given, dict | None):
            raise Invalid(f"{method} is not an object.")
        for name, each in _members(given):
            _check_kind(name, each, _LOGIN_TEXTS)
            if name in _LOGIN_OBJECTS and not isinstance(each, dict | None):
                raise Invalid(f"{name} is not an object.")


def _check_kind(name: str, value: object, texts: frozenset[str]) -> None:
    if name in texts and not isinstance(value, str | None):
        raise Invalid(f"{name} is not a text.")


def _json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"{bodies.MALFORMED}: it is not JSON.") from error


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the members of all objects within a sound JSON value."""
    if isinstance(value, dict):
        yield from value.items()
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for each in parts:
            yield from _members(each)


def _request_id(environ: WSGIEnvironment) -> str:
    """Return the ID that Keystone gave the request, or a new one where it didn't come so far."""
    return str(environ.setdefault("openstack.request_id", ids.new_request_id()))


def _answer(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    status: int,
    message: str,
    *more: tuple[str, str],
) -> Iterable[bytes]:
    title = http.HTTPStatus(status).phrase
    error = {"code": status, "title": title, "message": message}
    body = orjson.dumps({"error": error})
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Vary", "X-Auth-Token"),
        ("x-openstack-request-id", _request_id(environ)),
        *more,
    ]
    start_response(f"{status} {title}", headers)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
