"""One cluster's API with the ticket of an administrator, which is in memory only."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests
import requests.adapters

from common.clients import direct
from common.errors import ConfigurationError
from compute.hypervisor.proxmox.api import handshake

#: a node proxies for up to 30 seconds
_SECONDS = (10, 40)
_TASK_SECONDS = 3600.0
_POLL_SECONDS = 0.5


class Refused(Exception):
    """The API refused a call; the text is its own."""

    def __init__(self, call: str, status: int, text: str) -> None:
        super().__init__(f"{call}: {status} {text}")
        self.status = status


@dataclass(frozen=True)
class Place:
    """Where a cluster's API is, and how its certificate is checked."""

    cluster: str
    host: str
    port: int
    ca_file: str | None = None
    """CA certificates; None: the system's."""
    fingerprint: str | None = None
    """SHA-256 of the certificate, which is trusted for this session; then no CA is asked."""

    @property
    def name(self) -> str:
        """Host and port."""
        return f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """What its paths begin with."""
        return f"https://{self.name}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class _Pinned(requests.adapters.HTTPAdapter):
    """Connects only to who shows a certificate."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools so."""
        options["assert_fingerprint"] = self._fingerprint
        super().init_poolmanager(*args, **options)


def shown_fingerprint(place: Place) -> str:
    """Return the SHA-256 of the certificate that is shown there, as Proxmox VE writes it.

    Nothing is sent, and nothing is believed. Raises ConfigurationError where there is no TLS.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((place.host, place.port), _SECONDS[0]) as plain,
            context.wrap_socket(plain, server_hostname=place.host) as secured,
        ):
            shown = secured.getpeercert(binary_form=True) or b""
    except ssl.SSLError as error:
        raise ConfigurationError(
            handshake.tls_problem(place.name, error, place.cluster).text
        ) from error
    except OSError as error:
        why = handshake.connect_problem(error)
        raise ConfigurationError(f"Cluster {place.cluster}: {place.name}: {why}.") from error
    return hashlib.sha256(shown).digest().hex(":").upper()


class Untrusted(Exception):
    """The certificate is of no CA that is known; nothing was sent."""


class Root:
    """The API of one cluster."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._session = direct.session()
        self._session.verify = place.ca_file or True
        if place.fingerprint:
            self._session.verify = False  # the adapter knows better
            self._session.mount("https://", _Pinned(place.fingerprint.replace(":", "")))

    def log_in(self, user: str, password: str, second: Callable[[], str]) -> None:
        """Get a ticket. Raises ConfigurationError, Refused or Untrusted.

        ``second``: asks for the code of a second factor, if the user has one.
        """
        path = "access/ticket"
        try:
            # Before version 9 a challenge is in a form of its own without it.
            login = {"username": user, "new-format": "1"}
            found = self.post(path, **login, password=password)
            if found.get("NeedTFA"):
                answer = {"tfa-challenge": found["ticket"], "password": f"totp:{second()}"}
                found = self.post(path, **login, **answer)
        except Refused as error:
            if error.status != requests.codes.unauthorized:
                raise
            raise ConfigurationError(
                f"Cluster {self.place.cluster}: {user} can't log in: the password is wrong, or "
                "the account is disabled."
            ) from None
        self._session.headers.update(
            {
                "Cookie": f"PVEAuthCookie={quote(found['ticket'], safe='')}",
                "CSRFPreventionToken": found["CSRFPreventionToken"],
            }
        )

    def get(self, path: str, **query: Any) -> Any:
        """Read."""
        return self._ask("GET", path, params=query)

    def post(self, path: str, **values: str) -> Any:
        """Write."""
        return self._ask("POST", path, data=values)

    def call(self, method: str, path: str, values: Mapping[str, str]) -> Any:
        """Write, and wait for the end of the task, if it is one. Raises Refused if it failed."""
        answer = self._ask(method, path, data=dict(values))
        if isinstance(answer, str) and answer.startswith("UPID:"):
            self._wait(f"{method} {path}", answer)
        return answer

    def is_secret(self, token_id: str, secret: str) -> bool:
        """Return whether a token has this secret."""
        session = {"Authorization": f"PVEAPIToken={token_id}={secret}", "Cookie": None}
        try:
            self._ask("GET", "version", headers=session)
        except Refused as error:
            if error.status != requests.codes.unauthorized:
                raise
            return False
        return True

    def authority(self) -> str | None:
        """Return the certificate of the cluster's own CA, as PEM, if the node shows it."""
        status = self.get("cluster/status")
        node = next(one["name"] for one in status if one["type"] == "node" and one.get("local"))
        listed = self.get(f"nodes/{node}/certificates/info")
        texts = (one.get("pem") for one in listed if one["filename"] == "pve-root-ca.pem")
        return next((str(text) for text in texts if text), None)

    def close(self) -> None:
        """Close the connections, and forget the ticket."""
        self._session.headers.clear()
        self._session.close()

    def _wait(self, what: str, upid: str) -> None:
        path = f"nodes/{upid.split(':')[1]}/tasks/{upid}/status"
        until = time.monotonic() + _TASK_SECONDS
        while time.monotonic() < until:
            status = self.get(path)
            if status["status"] == "stopped":
                ended = str(status.get("exitstatus"))
                if not ended.startswith(("OK", "WARNINGS")):
                    raise Refused(what, 0, ended)
                return
            time.sleep(_POLL_SECONDS)
        raise Refused(what, 0, f"the task {upid} doesn't end")

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        place = self.place
        url = f"{place.url}/api2/json/{quote(path, safe='/@!:')}"
        with _explained(place):
            answer = self._session.request(method, url, timeout=_SECONDS, **more)
        if answer.status_code != requests.codes.ok:
            raise Refused(f"{method} {path}", answer.status_code, _text(answer))
        try:
            return answer.json()["data"]
        except (ValueError, KeyError, TypeError):
            raise ConfigurationError(f"{place.name} is no API of Proxmox VE.") from None


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Say why there is no answer."""
    try:
        yield
    except requests.exceptions.SSLError as error:
        if place.fingerprint:
            text = f"{place.name} shows another certificate than {place.fingerprint}."
            raise ConfigurationError(text) from error
        problem = handshake.tls_problem(place.name, error, place.cluster)
        if problem.is_unknown_authority and place.ca_file is None:
            raise Untrusted(problem.text) from error
        raise ConfigurationError(problem.text) from error
    except requests.exceptions.ConnectionError as error:
        why = handshake.connect_problem(error)
        raise ConfigurationError(f"Cluster {place.cluster}: {place.name}: {why}.") from error
    except requests.exceptions.RequestException as error:
        why = type(error).__name__
        raise ConfigurationError(f"Cluster {place.cluster}: {place.name}: {why}.") from error


def _text(answer: requests.Response) -> str:
    """Return what a refusal says: its parameters, else its message, else its reason."""
    try:
        body = answer.json()
    except ValueError:
        return answer.reason or ""
    errors = body.get("errors") if isinstance(body, dict) else None
    if isinstance(errors, dict) and errors:
        return "; ".join(f"{name}: {str(text).strip()}" for name, text in errors.items())
    said = body.get("message") if isinstance(body, dict) else None
    return str(said or answer.reason or "").strip()
