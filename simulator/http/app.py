"""Turn a request into an answer, with the checks in the order of the real server.

Ordered faults, authentication, route (501), permission (403), forwarding to the node (595, 596,
500), parameters (400), handler. All of it is one generator, so that any step may wait.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import IO, Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from simulator.api.storage.upload import read_multipart
from simulator.console.websocket import WebSocket
from simulator.engine import Process, Sleep, Work
from simulator.errors import Dropped, PveError, not_implemented, unauthorized
from simulator.http.routes import Route, Router
from simulator.request import permissions
from simulator.request.call import Call, Upgrade
from simulator.request.call_faults import after, before
from simulator.request.params import validate
from simulator.state.access import Identity
from simulator.state.cluster import Cluster

PREFIX = "/api2/json"
AUTH_DELAY_SECONDS = 3.0
PROXY_TIMEOUT_SECONDS = 30.0
UNREACHABLE_SECONDS = 1.5
MAX_BODY = 512 * 1024
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE"})
_INDEX = [{"subdir": one} for one in ("version", "cluster", "nodes", "storage", "access", "pools")]


@dataclass
class Request:
    """A parsed request; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: IO[bytes]
    length: int


@dataclass
class Response:
    """An answer to be sent."""

    status: int
    reason: str = "OK"
    body: bytes = b""
    content_type: str = "application/json;charset=UTF-8"
    headers: list[tuple[str, str]] = field(default_factory=list)
    session: Callable[[WebSocket], None] | None = None
    """What is done with the connection once it is a websocket (status 101)."""


@dataclass(frozen=True)
class Entry:
    """Where a request came in: the cluster, and the node it was sent to ('' for any)."""

    cluster: Cluster
    node: str = ""

    def contacted(self) -> str:
        """Return the node that answers here, or '' when it is down."""
        nodes = self.cluster.nodes
        names = [self.node] if self.node else list(nodes)
        return next((one for one in names if nodes[one].up and nodes[one].proxy == "up"), "")


def _body(request: Request) -> dict[str, Any]:
    if not request.length:
        return {}
    if request.length > MAX_BODY:
        raise PveError("for data too large", 501, body=False)
    raw = request.body.read(request.length)
    if request.headers.get("content-type", "").startswith("application/json"):
        return _json(raw)
    return _form(raw.decode("utf-8", "replace"))


def _json(raw: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        text = raw.decode("utf-8", "replace")
        if re.match(r"\{[^\"}\s]", text):
            what = f'\'"\' expected, at character offset 1 (before "{text[1:]}")'
        else:
            what = f'malformed JSON string, at character offset 0 (before "{text}")'
        place = "at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934."
        raise PlainError(f"{what} {place}") from error
    return found if isinstance(found, dict) else {}


class PlainError(PveError):
    """A failure outside the API formatter: its text is the body."""


def _form(text: str) -> dict[str, Any]:
    found = parse_qs(text, keep_blank_values=True)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


class Api:
    """Answers requests to the API of all clusters."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def answer(self, entry: Entry, request: Request) -> Response:
        """Answer a request; raise Dropped to cut the connection instead."""
        parts = urlsplit(request.target)
        path = unquote(parts.path)[len(PREFIX) :] or "/"
        try:
            extra: dict[str, Any] = {}
            given: dict[str, Any] = _form(parts.query) if parts.query else {}
            if request.method == "POST" and path.endswith("/upload"):
                given |= self._upload(request, extra)
            else:
                given |= _body(request)
            work = self._serve(entry, request, path, given, extra)
            process = Process(work, entry.cluster.turn)
            data = entry.cluster.engine.run(process)
        except PveError as error:
            return failure(error)
        if isinstance(data, Upgrade):
            return Response(101, "Switching Protocols", session=data.session)
        return Response(200, body=orjson.dumps({"data": data, **_total(extra)}))

    @staticmethod
    def _upload(request: Request, extra: dict[str, Any]) -> dict[str, Any]:
        spooled = read_multipart(request.body, request.headers.get("content-type", ""))
        extra["spooled"] = spooled
        return {**spooled.fields, "filename": spooled.filename}

    def _serve(
        self,
        entry: Entry,
        request: Request,
        path: str,
        given: dict[str, Any],
        extra: dict[str, Any],
    ) -> Work:
        cluster, method = entry.cluster, request.method
        contacted = entry.contacted()
        if not contacted:
            raise Dropped
        if method not in _METHODS:
            raise PveError(f"method '{method}' not available", 501, body=False)
        match = re.match(r"^/nodes/([^/]+)", path)
        faults = cluster.faults.for_call(method, path, match.group(1) if match else "")
        for fault in faults:
            yield from before(fault)
        found = self._router.find(method, path)
        if found is not None and found[0].modern and not cluster.version.ha_rules:
            found = None
        who = yield from _identify(cluster, request, found is not None and found[0].public)
        if path == "/" and method == "GET":
            return _INDEX
        if found is None:
            raise not_implemented(method, path)
        route, named = found
        _check_permission(cluster, who, route, {**given, **named})
        yield from _reach(cluster, route, named.get("node", ""), contacted)
        params = validate(route.rules, {**given, **named})
        call = Call(
            cluster,
            who,
            method,
            path,
            params,
            contacted,
            given,
            extra=extra,
            headers=request.headers,
        )
        try:
            result = route.handler(call)
            if inspect.isgenerator(result):
                result = yield from result
        except PveError as error:
            if error.status == 401:
                yield Sleep(AUTH_DELAY_SECONDS)
            raise
        for fault in faults:
            yield from after(fault, call)
        return result


def _total(extra: Mapping[str, Any]) -> dict[str, int]:
    return {"total": extra["total"]} if "total" in extra else {}


def failure(error: PveError) -> Response:
    """Return the answer that an error makes."""
    if isinstance(error, PlainError):
        return Response(error.status, error.reason, f"{error.text}\n".encode(), "")
    if not error.body:
        return Response(error.status, error.reason, content_type="")
    message = error.text + ("\n" if error.newline else "")
    body: dict[str, Any] = {"data": None, "message": message}
    if error.errors is not None:
        body["errors"] = dict(error.errors)
    return Response(error.status, error.reason, orjson.dumps(body))


def _identify(cluster: Cluster, request: Request, public: bool) -> Work:
    """Return who asks; a refusal is delayed, as by the real server."""
    try:
        return Identity("") if public else authenticate(cluster, request)
    except PveError:
        yield Sleep(AUTH_DELAY_SECONDS)
        raise


def authenticate(cluster: Cluster, request: Request) -> Identity:
    """Return who asks, by API token, or by ticket with a CSRF token for writes. Raises 401."""
    access = cluster.access
    authorization = request.headers.get("authorization", "")
    if authorization.startswith("PVEAPIToken"):
        return access.authenticate_token(authorization[len("PVEAPIToken") :].lstrip("= "))
    cookie: SimpleCookie = SimpleCookie()
    try:
        cookie.load(request.headers.get("cookie", ""))
    except CookieError as error:
        raise unauthorized("No ticket") from error
    if "PVEAuthCookie" not in cookie:
        raise unauthorized("No ticket")
    who = access.authenticate_ticket(unquote(cookie["PVEAuthCookie"].value))
    if request.method != "GET":
        access.check_csrf(who.user, request.headers.get("csrfpreventiontoken", ""))
    return who


def _check_permission(
    cluster: Cluster, who: Identity, route: Route, given: Mapping[str, Any]
) -> None:
    if who.tokenid and not route.token:
        raise PveError("API tokens are not allowed here", 403)
    # A parameter that a path needs is missed before the privilege.
    if any(name not in given for name in re.findall(r"{(\w+)}", _path_of(route.check))):
        validate(route.rules, given)
    permissions.require(cluster.access, who, route.check, given)


def _path_of(check: permissions.Check) -> str:
    return str(check[1]) if check[0] == "perm" else ""


def _reach(cluster: Cluster, route: Route, node: str, contacted: str) -> Work:
    """Raise the error of a node, or of its privileged daemon, that can't be reached."""
    target = cluster.node(node) if node else cluster.nodes[contacted]
    if not route.proxied:
        target = cluster.nodes[contacted]
    elif target.name != contacted:
        if not target.up:
            yield Sleep(UNREACHABLE_SECONDS)
            raise PveError("No route to host", 595, body=False)
        if target.proxy == "down":
            raise PveError("Connection refused", 595, body=False)
    if route.protected and target.daemon == "down":
        raise PveError("Connection refused", 595, body=False)
    if route.protected and target.daemon == "hung":
        yield Sleep(PROXY_TIMEOUT_SECONDS)
        raise PveError("Connection timed out", 596, body=False)


def now_header() -> str:
    """Return the current time in HTTP's format."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
