"""When the API token and the nodes' certificates expire, for the metrics.

One call per interval and cluster: the token and the nodes take turns. What can't be read is left
out, and asked for again a round later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.log import logger
from common.metrics import table
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.client import Client

LOG = logger(__name__)

#: certificates of a node's API, in the order in which pveproxy prefers them
_SERVED = ("pveproxy-ssl.pem", "pve-ssl.pem")
_TOKEN = ""


class Expiry:
    """Reads the next one when it is due; used by one thread at a time."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._due = time.monotonic() + seconds
        self._waiting: list[str] = []
        self._logged: set[str] = set()

    def is_due(self) -> bool:
        """Return whether it is time for a call."""
        return time.monotonic() >= self._due

    def look(self, nodes: Iterable[str]) -> None:
        """Read one of them: one call. `nodes` are those that are online."""
        self._due = time.monotonic() + self._seconds
        if not self._waiting:
            self._waiting = [_TOKEN, *sorted(nodes)]
        what = self._waiting.pop(0)
        allowed = not self._client.forbidden
        try:
            if what == _TOKEN:
                self._read_token()
            else:
                self._read_certificate(what)
            self._logged.discard(what)
        except HypervisorError as error:
            # A privilege that only metrics want is none that builds lack.
            self._client.forbidden = self._client.forbidden and not allowed
            if what not in self._logged:
                about = f"of node {what}'s certificate" if what else "of the token"
                LOG.info("The expiry %s can't be read: %s", about, error.message)
                self._logged.add(what)

    def _read_token(self) -> None:
        path = paths.token(self._client.settings.token)
        expires = float(self._client.get(path).get("expire") or math.inf)
        table.TOKEN_EXPIRY.set(expires, self._client.settings.name)

    def _read_certificate(self, node: str) -> None:
        expires = served(self._client.get(f"nodes/{node}/certificates/info"))
        if expires is not None:
            table.CERTIFICATE_EXPIRY.set(expires, self._client.settings.name, node)


def served(listed: Sequence[Mapping[str, Any]]) -> float | None:
    """Return when the certificate of a node's API expires; None: it isn't listed. Pure."""
    ends = {str(one.get("filename")): one.get("notafter") for one in listed}
    found = next((ends[name] for name in _SERVED if ends.get(name)), None)
    return None if found is None else float(found)
