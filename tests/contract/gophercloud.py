"""Requests as gophercloud sends them: paths, headers, and which statuses it takes for success.

Terraform's provider and the CSI driver of Kubernetes are written in Go and can't run here. Their
order of calls is in the tests; what they have in common is here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import requests

from tests.compat.conftest import Site
from tests.functional.waiting import eventually

SECONDS = 60
#: what gophercloud takes for success (provider_client.go, defaultOkCodes)
_SUCCESS: Mapping[str, Collection[int]] = {
    "GET": (200,),
    "POST": (200, 201, 202),
    "PUT": (200, 201, 202),
    "DELETE": (202, 204),
}


class Refused(Exception):
    """An answer that gophercloud makes an error of."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Gone(Refused):
    """A 404: mostly no error to it."""


class Gophercloud:
    """One user's clients of the compute and the Block Storage API."""

    def __init__(self, site: Site) -> None:
        connection = site.cloud.connection("micronova-demo")
        self._token = connection.auth_token
        self._compute = connection.compute.get_endpoint().rstrip("/")
        self._volume = connection.block_storage.get_endpoint().rstrip("/")

    def volume(
        self, method: str, path: str, body: Any = None, *, version: str = "", service: str = ""
    ) -> Any:
        """Ask the Block Storage API; ``service`` as the client names it in the header."""
        headers = {}
        if version:
            headers["OpenStack-API-Version"] = f"{service or 'volume'} {version}"
            if not service:
                headers["X-OpenStack-Volume-API-Version"] = version
        return self._ask(method, f"{self._volume}/{path}", body, headers)

    def compute(self, method: str, path: str, body: Any = None, *, version: str = "") -> Any:
        """Ask the compute API."""
        headers = {}
        if version:
            headers["OpenStack-API-Version"] = f"compute {version}"
            headers["X-OpenStack-Nova-API-Version"] = version
        return self._ask(method, f"{self._compute}/{path}", body, headers)

    def _ask(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> Any:
        known = {"X-Auth-Token": self._token, "Accept": "application/json"}
        more = {} if body is None else {"json": body}
        answer = requests.request(method, url, headers={**known, **headers}, timeout=30, **more)
        if answer.status_code not in _SUCCESS[method]:
            error = Gone if answer.status_code == 404 else Refused
            raise error(answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def show(self, volume_id: str) -> Any:
        """Return a volume."""
        return self.volume("GET", f"volumes/{volume_id}")["volume"]

    def wait(self, volume_id: str, pending: Collection[str], target: Collection[str]) -> Any:
        """Poll a volume to one of the target statuses, as Terraform's StateChangeConf does.

        Any status that is neither fails at once; ``deleted`` is the 404.
        """
        found: dict[str, Any] = {}

        def reached() -> bool:
            found.clear()
            try:
                found.update(self.show(volume_id))
            except Gone:
                found["status"] = "deleted"
            status = found["status"]
            assert status in (*pending, *target), f"unexpected state '{status}', wanted {target}"
            return status in target

        eventually(reached, SECONDS, 0.05)
        return found

    def has(self, api: str, path: str) -> bool:
        """Return whether it is there; anything but 404 is an error."""
        ask = self.compute if api == "compute" else self.volume
        try:
            ask("GET", path)
        except Gone:
            return False
        return True
