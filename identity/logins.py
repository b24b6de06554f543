"""A WSGI layer before Keystone: passwords that are tried are few, from each address.

Keystone counts failures of a user (``[security_compliance]``), not of an address, from which a few
passwords can be tried on all users. What is counted is in memory: it ends with the process.
"""

from __future__ import annotations

import http
import io
import ipaddress
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import orjson

from identity.errors import TooManyLogins
from web.connections import peer_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

SECONDS = 300
"""How long failures of an address are counted, from the first of them."""

_LOGIN = "/v3/auth/tokens"
_PASSWORD = re.compile(r"/v3/users/(?P<id>[^/]+)/password")
"""Where users change their password, without a token: the old one is checked."""

#: addresses, and users that have logged in from one, that are remembered
_MOST = 10_000
#: how a login names its user
_NAMES = ("id", "name", "domain")


class Logins:
    """WSGI layer: refuses logins by password of an address from which too many have failed.

    A user who has logged in from there before is not refused: clients that share an address can't
    lock each other out. It expects bodies that ``identity.guard`` has checked.
    """

    def __init__(
        self,
        app: WSGIApplication,
        failures: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._failures, self._clock = app, failures, clock
        self._lock = threading.Lock()
        self._counted: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        user = _user_of(environ) if self._failures else None
        if user is None:
            return self._app(environ, start_response)
        peer = peer_of((_address(environ),))
        if (peer, user) in self._known:
            return self._app(environ, start_response)
        # It counts before Keystone is asked, or many at a time would all pass.
        if self._count(peer, 1) > self._failures:
            raise TooManyLogins(seconds=SECONDS)

        def started(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if not status.startswith(f"{http.HTTPStatus.UNAUTHORIZED} "):
                self._count(peer, -1)
            if status.startswith("2"):
                self._remember(peer, user)
            return start_response(status, headers, exc_info)

        return self._app(environ, started)

    def _count(self, peer: str, more: int) -> int:
        """Add to the failures of an address; return how many there are."""
        now = self._clock()
        with self._lock:
            until, number = self._counted.get(peer, (0.0, 0))
            if until <= now:
                until, number = now + SECONDS, 0
            number = max(0, number + more)
            self._counted[peer] = (until, number)
            self._counted.move_to_end(peer)
            if len(self._counted) > _MOST:
                self._counted.popitem(last=False)
        return number

    def _remember(self, peer: str, user: str) -> None:
        with self._lock:
            self._known[peer, user] = None
            self._known.move_to_end((peer, user))
            if len(self._known) > _MOST:
                self._known.popitem(last=False)


def _address(environ: WSGIEnvironment) -> str:
    """Return the client's address: a proxy on this machine says it last in its header."""
    peer = str(environ.get("REMOTE_ADDR", ""))
    forwarded = str(environ.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()
    try:
        ipaddress.ip_address(forwarded)
        is_near = ipaddress.ip_address(peer.partition("%")[0]).is_loopback
    except ValueError:
        return peer
    return forwarded if is_near else peer


def _user_of(environ: WSGIEnvironment) -> str | None:
    """Return whose password a request has, in one form; None: it is no login by password."""
    path = environ.get("PATH_INFO", "").rstrip("/")
    if environ["REQUEST_METHOD"] != "POST":
        return None
    changed = _PASSWORD.fullmatch(path)
    if changed is not None:
        return _form({"id": changed["id"]})
    if path != _LOGIN:
        return None
    raw = environ["wsgi.input"].read()
    environ["wsgi.input"] = io.BytesIO(raw)
    try:
        identity = orjson.loads(raw)["auth"]["identity"]
        user = identity["password"]["user"]
        return _form({name: user[name] for name in _NAMES if name in user})
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None


def _form(named: dict[str, Any]) -> str:
    return orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode().casefold()
