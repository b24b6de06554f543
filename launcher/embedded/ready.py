"""Readiness of the embedded cloud: every part was checked through the public APIs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import requests
from keystoneauth1 import exceptions as ksa_exceptions

from common.clients import credentials, direct
from common.context import internal
from common.counting import counted
from common.errors import Unavailable
from launcher.embedded.patience import Missing, Patience
from launcher.wiring import APIS

if TYPE_CHECKING:
    from launcher.wiring import Wiring

_REQUEST_SECONDS = 10


class Readiness:
    """Probes each part until it works, or until `stopping` is set."""

    def __init__(self, wiring: Wiring, stopping: threading.Event) -> None:
        self._wiring = wiring
        self._stopping = stopping
        self._session = credentials.session(wiring.conf, "placement")
        self._direct = direct.session()
        options = wiring.conf.embedded
        self._base_url = options.base_url
        self._hosts = options.hosts

    def wait(self, report: Callable[..., None]) -> None:
        """Return when all works. Raises Unavailable with the part that doesn't."""
        patience = Patience(self._stopping, lambda text: report(detail=text))
        for text, look in (
            ("waiting for the APIs", self._versions),
            ("waiting for the conductor", self._conductor),
            ("waiting for the hosts", self._known_hosts),
            ("waiting for the hosts in placement", self._providers),
        ):
            report(step=text)
            patience.until(functools.partial(_looked, look))

    def _versions(self) -> Missing | None:
        for number, name in enumerate(APIS):
            answer = self._direct.get(f"{self._base_url}/{name}/", timeout=_REQUEST_SECONDS)
            if answer.status_code not in (200, 300):
                return Missing(f"the {name} API answers {answer.status_code}", number)
        return None

    def _conductor(self) -> Missing | None:
        try:
            self._wiring.conductor_client.ping(internal())
        except Unavailable as error:
            return Missing(error.message)
        return None

    def _known_hosts(self) -> Missing | None:
        found = self._get("/compute/v2.1/os-hypervisors")["hypervisors"]
        up = sum(host["state"] == "up" for host in found)
        said = f"{up} of {counted(self._hosts, 'host is', 'hosts are')} up"
        return None if up >= self._hosts else Missing(said, up)

    def _providers(self) -> Missing | None:
        found = self._get("/placement/allocation_candidates?resources=VCPU:1,MEMORY_MB:1")
        offered = len(found["provider_summaries"])
        if offered >= self._hosts or (self._published() and self._servers()):
            return None
        return Missing(f"placement offers {offered} of {counted(self._hosts, 'host')}", offered)

    def _published(self) -> bool:
        known = self._get("/placement/resource_providers")["resource_providers"]
        return bool(len(known) >= self._hosts)

    def _servers(self) -> bool:
        """Return whether there are servers: a host that is full isn't offered."""
        return bool(self._get("/compute/v2.1/servers?all_tenants=1&limit=1")["servers"])

    def _get(self, path: str) -> Any:
        # Placement needs a version in which candidates exist.
        return self._session.get(
            self._base_url + path, headers={"OpenStack-API-Version": "placement 1.36"}
        ).json()


def _looked(look: Callable[[], Missing | None]) -> Missing | None:
    """Probe; what can't be reached is missing."""
    try:
        return look()
    except (requests.RequestException, ksa_exceptions.ClientException) as error:
        return Missing(f"{type(error).__name__}: {error}".splitlines()[0])
