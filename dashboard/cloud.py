"""The public APIs with a user's token: calls, in parallel where a page needs several."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import orjson
import requests
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1.access.access import AccessInfoV3
from keystoneauth1.session import Session as HttpSession

from common.errors import NotFound
from dashboard.errors import ApiRefused, ApiUnreachable, SessionEnded

COMPUTE, IMAGE, NETWORK, VOLUME = "compute", "image", "network", "block-storage"
IDENTITY, CLUSTERING = "identity", "clustering"
#: what the catalog's address of a service may lack
_VERSION: Mapping[str, str] = {IDENTITY: "/v3", CLUSTERING: "/v1"}

VERSIONS: Mapping[str, str] = {
    COMPUTE: "compute 2.96",
    VOLUME: "volume 3.70",
    CLUSTERING: "clustering 1.14",
}
"""The microversion that pages are written for."""
NUMBERS = "compute 2.87"
"""The last microversion whose hypervisors have numbers."""

DATA_TYPE = "application/octet-stream"


class Data:
    """What a browser uploads, read piece by piece while it is sent on."""

    def __init__(self, size_bytes: int, pieces: Iterator[bytes]) -> None:
        self.len = size_bytes
        """The name is that by which `requests` finds a length."""
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


@dataclass(frozen=True)
class Call:
    """One request to an API."""

    service: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    older: Mapping[str, Any] | None = None
    """The query for an API of the release before, which refuses what it doesn't know."""
    body: Any = None
    """Sent as JSON."""
    method: str = "GET"
    kind: str = "application/json"
    """The content type of the body."""
    data: Data | None = None
    """Sent as it is, in place of a body."""
    optional: bool = False
    """Whether the page can be shown without it: the answer is then `Missing`."""
    version: str = ""
    """The microversion, if this request needs another one than that of `VERSIONS`."""
    region: str | None = None
    """The region whose API is called; None: the dashboard's."""


@dataclass(frozen=True)
class Missing:
    """What an API didn't answer, in its words."""

    message: str
    status: int = 0

    def __bool__(self) -> bool:
        return False


def segment(text: str) -> str:
    """Return a name as one segment of a path. Raises NotFound."""
    # however it is encoded, what sends a request takes it for a step in the path
    if text in (".", ".."):
        raise NotFound(f"Nothing is named {text}.")
    return quote(text, safe="")


class Cloud:
    """The APIs for one request of a browser."""

    def __init__(
        self,
        http: HttpSession,
        access: AccessInfoV3,
        pool: ThreadPoolExecutor,
        *,
        interface: str,
        region: str | None,
        seconds: float,
        address: str = "",
    ) -> None:
        """`address`: the browser's, which APIs that trust the dashboard record."""
        self._http, self._access, self._pool = http, access, pool
        self._interface, self._region, self._seconds = interface, region, seconds
        # A plugin that has a token already is beside all those that log in: a megabyte.
        self._always = {"Accept": "application/json", "X-Auth-Token": access.auth_token}
        if address:
            self._always["X-Forwarded-For"] = address
        self._lock = threading.Lock()
        self.calls = 0
        """How many requests were sent."""
        self.waited = 0.0
        """Seconds in them, one after the other."""

    def get(self, service: str, path: str, **query: Any) -> Any:
        """Return an API's answer. Raises ApiRefused, ApiUnreachable or SessionEnded."""
        return self.send(Call(service, path, query))

    def post(self, service: str, path: str, body: Any) -> Any:
        """Send a change; return the answer."""
        return self.send(Call(service, path, body=body, method="POST"))

    def put(self, service: str, path: str, body: Any) -> Any:
        """Send a resource's new state."""
        return self.send(Call(service, path, body=body, method="PUT"))

    def patch(self, service: str, path: str, body: Any, kind: str = "application/json") -> Any:
        """Send what changes of a resource, in the form that a content type says."""
        return self.send(Call(service, path, body=body, method="PATCH", kind=kind))

    def upload(self, service: str, path: str, data: Data) -> Any:
        """Send data of any length on."""
        return self.send(Call(service, path, method="PUT", kind=DATA_TYPE, data=data))

    def delete(self, service: str, path: str) -> Any:
        """Delete what a path names."""
        return self.send(Call(service, path, method="DELETE"))

    def together(self, *calls: Call) -> list[Any]:
        """Return the answers of independent calls, sent at the same time."""
        *others, last = calls
        sent: list[Future[Any]] = [self._pool.submit(self.send, call) for call in others]
        try:
            final = self.send(last)
            return [*(one.result() for one in sent), final]
        finally:
            for one in sent:
                one.cancel()

    def has(self, service: str) -> bool:
        """Return whether the catalog names a service."""
        return self._endpoint(service) is not None

    def regions(self) -> list[str]:
        """Return the names of the catalog's regions that have a compute API, sorted."""
        found = self._access.service_catalog.get_endpoints(
            service_type=COMPUTE, interface=self._interface
        )
        listed = (one for some in found.values() for one in some if one)
        return sorted({str(one["region_id"]) for one in listed})

    def is_here(self, region: str) -> bool:
        """Return whether the pages show the servers of a region."""
        return self._endpoint(COMPUTE, region) == self._endpoint(COMPUTE)

    def login_regions(self) -> list[str]:
        """Return the regions that a client of the user is to be set up for."""
        return [self._region] if self._region else self.regions()

    def login_url(self) -> str:
        """Return Keystone's public address. Raises ApiUnreachable where the catalog has none."""
        found = self._endpoint(IDENTITY, interface="public")
        if found is None:
            raise ApiUnreachable(f"The catalog has no {IDENTITY} service.")
        return found

    def send(self, call: Call) -> Any:
        """Send one call."""
        try:
            return self._ask(call)
        except (ApiRefused, ApiUnreachable) as error:
            if not call.optional:
                raise
            return Missing(error.message, getattr(error, "status", 503))

    def _ask(self, call: Call) -> Any:
        try:
            return self._send(call)
        except ApiRefused as error:
            if call.older is None or error.status != HTTPStatus.BAD_REQUEST:
                raise
        return self._send(replace(call, query=call.older, older=None))

    def _send(self, call: Call) -> Any:
        base = self._endpoint(call.service, call.region)
        if base is None:
            raise ApiUnreachable(f"The catalog has no {call.service} service.")
        asked = {name: value for name, value in call.query.items() if value not in (None, "")}
        url = f"{base}{call.path}" + (f"?{urlencode(asked, doseq=True)}" if asked else "")
        sent = dict(self._always)
        if call.body is not None or call.data is not None:
            sent["Content-Type"] = call.kind
        if call.version or call.service in VERSIONS:
            sent["OpenStack-API-Version"] = call.version or VERSIONS[call.service]
        began = time.monotonic()
        try:
            answer = self._http.request(
                url,
                call.method,
                authenticated=False,
                headers=sent,
                raise_exc=False,
                redirect=False,
                # changes and their answers have secrets: passwords, private keys, tokens
                log=call.method == "GET",
                **({"json": call.body} if call.data is None else {"data": call.data}),
                timeout=self._seconds,
            )
        except (ksa_exceptions.ConnectFailure, requests.RequestException) as error:
            raise ApiUnreachable(f"The {call.service} API can't be reached.") from error
        finally:
            with self._lock:
                self.calls += 1
                self.waited += time.monotonic() - began
        return _content(answer, call.service)

    def _endpoint(
        self, service: str, region: str | None = None, interface: str = ""
    ) -> str | None:
        try:
            found = self._access.service_catalog.url_for(
                service_type=service,
                interface=interface or self._interface,
                region_name=region or self._region,
            )
        except ksa_exceptions.CatalogException:
            return None
        base = str(found).rstrip("/")
        return base.removesuffix(_VERSION.get(service, "")) + _VERSION.get(service, "")


def _content(answer: requests.Response, service: str) -> Any:
    if answer.status_code == 401:
        raise SessionEnded("The session has ended: log in again.")
    if answer.status_code >= 400:
        request_id = answer.headers.get("x-openstack-request-id", "")
        message = message_of(answer) or f"The {service} API answers {answer.status_code}."
        raise ApiRefused(message, status=answer.status_code, request_id=request_id)
    if not answer.content:
        return {}
    try:
        return orjson.loads(answer.content)
    except ValueError as error:
        raise ApiUnreachable(f"The {service} API doesn't answer with JSON.") from error


def message_of(answer: requests.Response) -> str:
    """Return the sentence of an error, whichever API's form it has."""
    try:
        body = answer.json()
    except ValueError:
        return ""
    if not isinstance(body, Mapping):
        return ""
    first = next(iter(body.values()), "")
    inner: Any = body if "message" in body else body.get("error", first)
    found = inner.get("message") if isinstance(inner, Mapping) else inner
    return str(found) if isinstance(found, str) else ""


def rows(answer: Any, key: str) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a list's answer; none where it is `Missing`."""
    return answer[key] if answer else ()


def following(answer: Any, key: str) -> str:
    """Return the marker of a list's next page; empty: this is the last one."""
    links = answer.get(f"{key}_links", ()) if answer else ()
    addresses = [link["href"] for link in links if link.get("rel") == "next"]
    if answer and isinstance(answer.get("links"), Mapping):
        # Keystone's form
        addresses.append(answer["links"].get("next") or "")
    if not addresses:
        return ""
    return dict(parse_qsl(urlsplit(str(addresses[0])).query)).get("marker", "")
