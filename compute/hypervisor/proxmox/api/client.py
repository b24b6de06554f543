"""The HTTP client of one cluster: proxmoxer against several endpoints, used in turn.

Only reads are ever sent twice. An endpoint that can't be reached is not used for a while (a
circuit breaker), so that a dead node doesn't delay requests to the others.
"""

from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import proxmoxer
import requests
import requests.adapters
from proxmoxer import core

from common.clients import direct
from common.failures import Verdict
from common.messages.reports import Category
from common.metrics import table
from compute.hypervisor.only_look import require_may_write
from compute.hypervisor.proxmox.api import handshake, privileges
from compute.hypervisor.proxmox.api.errors import ApiError, api_error
from compute.hypervisor.proxmox.api.multipart import Multipart
from compute.hypervisor.proxmox.api.templates import template
from compute.hypervisor.proxmox.settings import ClusterSettings

#: connections kept to one endpoint
POOL = 64
BREAK_SECONDS = (1.0, 2.0, 5.0, 15.0, 30.0)
#: the proxying node could not connect to the node: nothing was sent
NOT_PROXIED = 595
#: pauses before a read is repeated whose answer was lost, as happens when a server closes an idle
#: connection at the moment of its use
READ_AGAIN_SECONDS = (0.1, 0.5, 2.0)
#: a longer request was not lost but not answered: another try would take as long
LOST_SOON_SECONDS = 10.0


#: names the node that was asked, and the others' addresses
_STATUS = "cluster/status"
_PERMISSIONS = privileges.PERMISSIONS
#: calls that another node would carry out by ssh
_OWN_NODE = frozenset({"upload", "vncproxy", "termproxy"})
#: what proxmoxer makes of an answer without a body
_FORM = "micronova form"
"""The value of a request that is its whole body."""
_NO_BODY = {"errors": b""}


class _NotSentError(Exception):
    """No connection was made."""


class _LostError(Exception):
    """The answer did not come; the request may have been served."""


class _Endpoint:
    """One URL with its connections and its circuit breaker."""

    def __init__(
        self, settings: ClusterSettings, host: str, port: int, *, found: bool = False
    ) -> None:
        self.name, self.host, self.port = f"{host}:{port}", host, port
        self._cluster = settings.name
        self._found = found
        """Whether it was learnt from the cluster: what it can't do another endpoint can."""
        token = settings.token
        self._api = proxmoxer.ProxmoxAPI(
            f"[{host}]" if ":" in host else host,
            port=port,
            user=token.user,
            token_name=token.name,
            token_value=token.secret,
            verify_ssl=settings.verify,
            timeout=(settings.connect_seconds, settings.timeout_seconds),
        )
        session = direct.without_environment(self._api._store["session"])
        session.mount(
            "https://", requests.adapters.HTTPAdapter(pool_maxsize=POOL, pool_block=False)
        )
        session.hooks["response"].append(_whole_reason)
        self._session = session
        self._failures = 0
        self.open_until = 0.0

    def call(self, method: str, path: str, values: Mapping[str, Any]) -> Any:
        """Send one request. Raises ApiError, _NotSentError, or _LostError."""
        began, result = time.perf_counter(), "ok"
        try:
            return self._call(method, path, values)
        except ApiError as error:
            result = error.category.value
            raise
        except _NotSentError:
            result = "not_sent"
            raise
        except _LostError:
            result = "lost"
            raise
        finally:
            labels = (self._cluster, method, template(path))
            table.PROXMOX_CALLS.count(*labels, result)
            table.PROXMOX_CALL_SECONDS.observe(time.perf_counter() - began, *labels)

    def _call(self, method: str, path: str, values: Mapping[str, Any]) -> Any:
        for value in values.values():
            if isinstance(value, io.IOBase):
                value.seek(0)
        try:
            answer = self._answer(method, path, values)
        except core.ResourceException as error:
            self._failures = 0
            errors = error.errors if error.errors != _NO_BODY else None
            raise api_error(error.status_code, str(error.content or ""), errors) from error
        except requests.exceptions.SSLError as error:
            self._broken()
            problem = handshake.tls_problem(self.name, error, self._cluster)
            if self._found:
                raise _NotSentError(problem.text) from error
            failed = ApiError(Category.CONFIGURATION, problem.text)
            failed.remedy = problem.line
            raise failed from error
        except requests.exceptions.ConnectTimeout as error:
            self._broken()
            raise _NotSentError(f"{self.name}: no connection in time") from error
        except requests.exceptions.ConnectionError as error:
            self._broken()
            if _refused(error):
                why = handshake.connect_problem(error)
                raise _NotSentError(f"{self.name}: {why}") from error
            raise _LostError(f"{self.name}: the connection broke") from error
        except requests.exceptions.RequestException as error:
            raise _LostError(f"{self.name}: {type(error).__name__}") from error
        self._failures = 0
        self.open_until = 0.0
        if isinstance(answer, dict) and isinstance(answer.get("errors"), bytes):
            raise _LostError(f"{self.name}: the answer is no JSON")
        return answer

    def _answer(self, method: str, path: str, values: Mapping[str, Any]) -> Any:
        form = values.get(_FORM)
        resource = self._api(path)
        if not isinstance(form, Multipart):
            return getattr(resource, method)(**values)
        # proxmoxer would have all of it in memory.
        session = self._session
        response = requests.Session.request(
            session,
            "POST",
            resource._store["base_url"],
            data=form,
            headers={"Content-Type": form.content_type},
            auth=session.auth,
            timeout=session.auth.timeout,  # type: ignore[union-attr]
            verify=session.auth.verify_ssl,  # type: ignore[union-attr]
        )
        if response.status_code >= 400:
            errors = resource._store["serializer"].loads_errors(response)
            raise core.ResourceException(
                response.status_code, "", response.reason or "", errors=errors
            )
        return resource._store["serializer"].loads(response)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _broken(self) -> None:
        pause = BREAK_SECONDS[min(self._failures, len(BREAK_SECONDS) - 1)]
        self._failures += 1
        self.open_until = time.monotonic() + pause


def _whole_reason(response: requests.Response, **_options: object) -> None:
    """Use an error's body as its text: the reason phrase has only the first line."""
    if response.status_code < 400:
        return
    try:
        message = response.json()["message"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(message, str) and message.startswith(response.reason or ""):
        response.reason = message.strip()


def _refused(error: requests.exceptions.ConnectionError) -> bool:
    """Return whether no connection was made."""
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return any(known.__name__ == "NewConnectionError" for known in type(reason).__mro__)


def _nobody() -> None:
    """Guard nothing, as where no agents are carried."""


def _node(path: str) -> str:
    """Return the node that a path names, or an empty text."""
    return path.split("/", 2)[1] if path.startswith("nodes/") else ""


class Client:
    """Requests to one cluster. Paths have no leading slash; answers are ``data``'s content."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.endpoints = [_Endpoint(settings, host, port) for host, port in settings.endpoints]
        self.own: dict[str, _Endpoint] = {}
        """Node → its own endpoint, as far as ``/cluster/status`` says whose they are."""
        self.silent: set[str] = set()
        """Nodes that an endpoint found no way to when they were asked last."""
        self.forbidden = False
        """Whether something was forbidden since this was last set to False."""
        self.guard: Callable[[], None] = _nobody
        """Called before each write is sent; raises where it must not be sent."""
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def get(self, path: str, **params: Any) -> Any:
        """Read. Raises ApiError; tried on another endpoint when the first one fails.

        A read whose answer was lost is repeated: it changes nothing.
        """
        began = time.monotonic()
        for pause in READ_AGAIN_SECONDS:
            try:
                return self._request("get", path, params)
            except ApiError as error:
                if not error.lost or time.monotonic() - began > LOST_SOON_SECONDS:
                    raise
                if self._closed.wait(pause):
                    raise
        return self._request("get", path, params)

    def post(self, path: str, **data: Any) -> Any:
        """Write. Raises ApiError, ``unknown_outcome`` when it may have been served."""
        return self._request("post", path, data)

    def post_there(self, path: str, **data: Any) -> tuple[str, int, Any]:
        """Write, as ``post``; return host and port of who answered, and the answer.

        What the call opens is on that endpoint only.
        """
        endpoint, answer = self._ask("post", path, data)
        return endpoint.host, endpoint.port, answer

    def put(self, path: str, **data: Any) -> Any:
        """Write; see ``post``."""
        return self._request("put", path, data)

    def delete(self, path: str, **params: Any) -> Any:
        """Write; see ``post``."""
        return self._request("delete", path, params)

    def upload(self, node: str, storage: str, content: str, name: str, data: bytes) -> str:
        """Upload a file into a storage; return the UPID. A file of that name is replaced silently.

        The request is sent to the node itself if its endpoint is known and answers: another node
        would copy the file there by ssh.
        """
        stream = io.BytesIO(data)
        stream.name = name  # the multipart's file name
        path = f"nodes/{node}/storage/{storage}/upload"
        return str(self.post(path, content=content, filename=stream))

    def upload_pieces(self, node: str, form: Multipart, storage: str) -> str:
        """Upload a file that is not in memory; see ``upload``."""
        return str(self.post(f"nodes/{node}/storage/{storage}/upload", **{_FORM: form}))

    def close(self) -> None:
        """Close all connections."""
        self._closed.set()
        for endpoint in {*self.endpoints, *self.own.values()}:
            endpoint.close()

    def grant(self, refusal: str) -> str | None:
        """Return the commands that grant what a refusal of Proxmox VE names as lacking, if any."""
        missing = privileges.refusal(refusal)
        return self.granting(missing) if missing else None

    def granting(self, missing: Iterable[privileges.Need]) -> str | None:
        """Return the commands that grant what the token lacks, without a loss of what it has."""
        try:
            granted: privileges.Granted = self._request("get", _PERMISSIONS, {})
        except ApiError:
            granted = {}  # the lines are worth more than none
        return privileges.remedy(missing, self.settings.token, granted)

    def learn(self, asked: _Endpoint, status: list[Mapping[str, Any]]) -> None:
        """Record whose endpoint was asked, and derive the other nodes' endpoints.

        The cluster's addresses are used only if the endpoint asked has one of them and
        certificates are checked: nobody outside the cluster must get the token.
        """
        members = [one for one in status if one.get("type") == "node"]
        nodes = {str(one["name"]): str(one.get("ip", "")) for one in members}
        mine = next((str(one["name"]) for one in members if one.get("local")), None)
        if mine is None:
            return
        with self._lock:
            self.own[mine] = asked
            if nodes.get(mine) != asked.host or self.settings.verify is False:
                return
            for name, address in nodes.items():
                if address and name not in self.own:
                    self.own[name] = self._at(address, asked.port)

    def _at(self, host: str, port: int) -> _Endpoint:
        same = (one for one in self.endpoints if (one.host, one.port) == (host, port))
        return next(same, None) or _Endpoint(self.settings, host, port, found=True)

    def _order(self, first: _Endpoint | None) -> Iterator[_Endpoint]:
        if first is not None and first.open_until <= time.monotonic():
            yield first
        yield from (one for one in self._in_turn() if one is not first)

    def _in_turn(self) -> Iterator[_Endpoint]:
        with self._lock:
            first = next(self._turn) % len(self.endpoints)
        turned = self.endpoints[first:] + self.endpoints[:first]
        now = time.monotonic()
        closed = [one for one in turned if one.open_until <= now]
        if not closed:
            closed = [min(turned, key=lambda one: one.open_until)]
        yield from closed
        # Endpoints with an open breaker are a last resort.
        yield from (one for one in turned if one not in closed)

    def preferred(self, path: str) -> _Endpoint | None:
        """Return the best endpoint for a request, if there is one.

        ``/cluster/status`` names the node that answers, so it is sent to an endpoint whose node
        is not known yet.
        """
        if path == _STATUS:
            with self._lock:
                known = list(self.own.values())
            return next((one for one in self.endpoints if one not in known), None)
        parts = path.split("/")
        return self.own.get(parts[1]) if parts[-1] in _OWN_NODE else None

    def _request(self, method: str, path: str, values: dict[str, Any]) -> Any:
        return self._ask(method, path, values)[1]

    def _ask(self, method: str, path: str, values: dict[str, Any]) -> tuple[_Endpoint, Any]:
        if method != "get":
            require_may_write(f"{method.upper()} {path}")
        problems: list[str] = []
        lost = False
        last: ApiError | None = None
        for endpoint in self._order(self.preferred(path)):
            if method != "get":
                self.guard()
            try:
                answer = endpoint.call(method, path, dict(values))
                if path == _STATUS:
                    self.learn(endpoint, answer)
                return endpoint, answer
            except _NotSentError as error:
                problems.append(str(error))
            except _LostError as error:
                if method != "get":
                    raise ApiError(
                        Category.UNKNOWN_OUTCOME,
                        f"The answer to {method} {path} was lost: {error}.",
                        verdict=Verdict.AWAIT_HOST,
                    ) from error
                lost = True
                problems.append(str(error))
            except ApiError as error:
                if error.status != NOT_PROXIED:
                    self.forbidden |= error.category is Category.AUTHORIZATION
                    if error.remedy is None and path != _PERMISSIONS:
                        error.remedy = self.grant(error.text)
                    raise
                self.silent.add(_node(path))
                # Another endpoint may reach the node; nothing was done yet.
                if last is not None:
                    raise
                last = error
        if last is not None:
            raise last
        cluster = self.settings.name
        raise ApiError(
            Category.NODE_UNHEALTHY,
            f"No endpoint of cluster {cluster} answers ({'; '.join(problems)}).",
            lost=lost,
            verdict=Verdict.AWAIT_HOST,
        )
