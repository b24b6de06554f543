"""A log of who did what: one event of CADF, a line of JSON, for each request that an API answers.

The events are those of keystonemiddleware's audit filter, as far as it has them: the same action,
outcome, initiator and reason. Beyond it they name the resource, and requests without a valid
token are among them. No body, token or value of a query is written.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import orjson
from oslo_config import cfg

from common import clock
from common.errors import ConfigurationError
from common.log import logger
from web.measuring import ACTION, ROUTE
from web.proxies import client_address

LOG = logger(__name__)

GROUP = "audit_log"

OPTIONS = [
    cfg.StrOpt(
        "file",
        help="File to which the APIs append an event in JSON (CADF, as keystonemiddleware's audit "
        "filter) for each request: who asked for what, from where, and what was answered. Another "
        "file of that name is used within a second, so it may be rotated. Not set: no events.",
    ),
    cfg.ListOpt(
        "ignore_req_list",
        default=[],
        help="Methods of requests without events, such as GET, HEAD. Those that are refused (401, "
        "403, 429) have events in any case.",
    ),
]

_EVENT = "http://schemas.dmtf.org/cloud/audit/1.0/event"
_USER = "service/security/account/user"
_UNKNOWN = "unknown"
_REFUSALS = frozenset({"401", "403", "429"})
_VERBS: Mapping[str, str] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "update",
    "DELETE": "delete",
    "GET": "read",
    "HEAD": "read",
}
_VERSION = re.compile(r"v[0-9]+(\.[0-9]+)?")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}", re.ASCII)
#: a part of a path after which a secret follows
_BEFORE_SECRETS = frozenset({"os-console-auth-tokens"})
_SECRET = "***"  # noqa: S105
_LONGEST = 512
_LOOK_SECONDS = 1.0

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare these options on `conf`; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS))]


class EventFile:
    """Appends lines, each by one write, so that processes may share a file."""

    def __init__(self, path: str, now: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigurationError where it can't be opened."""
        self._path, self._now = path, now
        try:
            self._file = self._open()
        except OSError as error:
            raise ConfigurationError(f"[{GROUP}] file: {error}") from error
        self._looked_at, self._failed_at = now(), float("-inf")

    def append(self, line: bytes) -> None:
        """Write a line; a failure is logged, once a minute, and the request is answered."""
        try:
            if self._now() - self._looked_at >= _LOOK_SECONDS:
                self._look()
            os.write(self._file, line)
        except OSError as error:
            if self._now() - self._failed_at >= 60.0:
                self._failed_at = self._now()
                LOG.error("Events of the audit log are lost: %s", error)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def _look(self) -> None:
        """Open the file again where another one has its name now."""
        self._looked_at = self._now()
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                return
        new = self._open()
        # The number remains the same, which another thread may be about to write to.
        os.dup2(new, self._file, inheritable=False)
        os.close(new)


class Audit:
    """WSGI layer around the token check: writes an event when a request was answered."""

    def __init__(
        self, app: Wsgi, service_type: str, events: EventFile, ignored: Iterable[str] = ()
    ) -> None:
        self._app, self._type, self._events = app, service_type, events
        self._ignored = frozenset(method.strip().upper() for method in ignored)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        status, location = "500", ""

        def start(line: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            nonlocal status, location
            status = line[:3]
            location = next((v for name, v in headers if name.lower() == "location"), "")
            return start_response(line, headers, exc_info)

        # As it came: applications mounted below move parts of it.
        script, path = environ.get("SCRIPT_NAME", ""), environ.get("PATH_INFO", "")
        try:
            return self._app(environ, start)
        finally:
            ignored = environ.get("REQUEST_METHOD") in self._ignored
            if not ignored or status in _REFUSALS:
                made = event(environ, self._type, script, path, status, location)
                self._events.append(orjson.dumps(made, option=orjson.OPT_APPEND_NEWLINE))


def around(app: Wsgi, conf: cfg.ConfigOpts, service_type: str) -> Wsgi:
    """Return an API behind its log of events, if there is to be one. Raises ConfigurationError."""
    register(conf)
    options = conf[GROUP]
    if not options.file:
        return app
    return Audit(app, service_type, EventFile(options.file), options.ignore_req_list)


def event(
    environ: Mapping[str, Any],
    service_type: str,
    script: str,
    path: str,
    status: str,
    location: str = "",
) -> dict[str, Any]:
    """Return the event of a request that was answered."""
    route = environ.get(ROUTE, "")
    parts = list(_parts(path, route))
    failed = int(status) >= 400
    return {
        "typeURI": _EVENT,
        "eventType": "activity",
        "id": str(uuid4()),
        "eventTime": clock.utcnow().isoformat(timespec="milliseconds"),
        "action": _action(environ, route),
        "outcome": "failure" if failed else "success",
        "reason": {"reasonType": "HTTP", "reasonCode": status},
        "initiator": _initiator(environ),
        "target": {
            "typeURI": "/".join(["service", service_type, *_nouns(route)]),
            "id": _target(parts, route, "" if failed else location),
        },
        "observer": {"typeURI": f"service/{service_type}", "id": "target"},
        "requestPath": _clean(script + "".join(f"/{part}" for part in parts)) + _names(environ),
    }


def _parts(path: str, route: str) -> Iterator[str]:
    """Yield the parts of a path, without secrets."""
    given = [part for part in path.split("/") if part]
    named = [part for part in route.split("/") if part]
    names = [""] * (len(given) - len(named)) + named  # below where the API is mounted
    before = ""
    for part, name in zip(given, names, strict=False):
        secret = before.lower() in _BEFORE_SECRETS or (name.startswith("{") and "token" in name)
        yield _SECRET if secret else part
        before = part


def _action(environ: Mapping[str, Any], route: str) -> str:
    """Return CADF's word for it, with the action of a server that a body names."""
    method = environ.get("REQUEST_METHOD", "")
    verb = _VERBS.get(method, _UNKNOWN)
    named = environ.get(ACTION, "")
    if named and _WORD.fullmatch(str(named)):
        return f"update/{named}"
    if verb == "read" and route and not route.endswith("}"):
        return "read/list"
    return verb


def _nouns(route: str) -> Iterator[str]:
    """Yield the constant parts of a route, without the version."""
    for part in route.strip("/").split("/"):
        if part and not part.startswith("{") and not _VERSION.fullmatch(part):
            yield part


def _target(parts: list[str], route: str, location: str) -> str:
    """Return the ID of the resource: of what was made, or the last ID in the path."""
    named = [part for part in route.split("/") if part]
    if location and named and not named[-1].startswith("{") and named[-1] != "action":
        return _clean(location.rstrip("/").rpartition("/")[2])
    for part, name in zip(reversed(parts), reversed(named), strict=False):
        if name.startswith("{"):
            return _clean(part)
    return _UNKNOWN


def _initiator(environ: Mapping[str, Any]) -> dict[str, Any]:
    """Return who asked, as the token says; addresses only of proxies that are trusted."""
    known = environ.get("HTTP_X_IDENTITY_STATUS") == "Confirmed"
    token = environ.get("keystone.token_info", {}).get("token", {}) if known else {}
    found = {
        "typeURI": _USER,
        "id": _of(environ, "HTTP_X_USER_ID", known),
        "name": _of(environ, "HTTP_X_USER_NAME", known),
        "domain_id": _of(environ, "HTTP_X_USER_DOMAIN_ID", known),
        "project_id": _of(environ, "HTTP_X_PROJECT_ID", known),
        "host": {
            "address": client_address(environ),
            "agent": _clean(environ.get("HTTP_USER_AGENT", "")),
        },
        "credential": {"type": "token", "identity_status": "Confirmed" if known else "Invalid"},
        "request_id": environ.get("openstack.request_id", ""),
        "global_request_id": environ.get("openstack.global_request_id", ""),
    }
    applied = token.get("application_credential") or {}
    if applied.get("id"):
        found["credential"]["application_credential_id"] = applied["id"]
    return found


def _of(environ: Mapping[str, Any], name: str, known: bool) -> str:
    return _clean(environ.get(name) or _UNKNOWN) if known else _UNKNOWN


def _names(environ: Mapping[str, Any]) -> str:
    """Return what a query names, without the values, which may be anything."""
    pairs = environ.get("QUERY_STRING", "")[:_LONGEST].split("&")
    found = [name for name in (pair.partition("=")[0] for pair in pairs) if _WORD.fullmatch(name)]
    return f"?{'&'.join(found)}" if found else ""


def _clean(text: str) -> str:
    """Return a text as JSON may hold it, shortened."""
    return text[:_LONGEST].encode("utf-8", "replace").decode()
