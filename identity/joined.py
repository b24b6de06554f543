"""Joins a cloud to a Keystone that exists: a region with this cloud's endpoints in its catalog.

It is what `openstack region create` and `openstack endpoint create` do, so that it may run again.
A region that holds another cloud's endpoints is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from identity.errors import RegionTaken
from identity.layout import INTERFACES, Endpoint

if TYPE_CHECKING:
    from keystoneauth1.session import Session

COMPUTE = "compute"


class Catalog:
    """The catalog of a Keystone, over its API. `auth_url` ends with `/v3`."""

    def __init__(self, session: Session, auth_url: str) -> None:
        self._session = session
        self._url = auth_url

    def join(self, region: str, endpoints: Collection[Endpoint], known: Collection[str]) -> bool:
        """Give the region these endpoints; return whether anything had to be changed.

        `known` are URLs of this cloud's compute API, now and at its former starts. Raises
        RegionTaken when the region's is none of them, before anything is changed.
        """
        services = {one["type"]: one["id"] for one in self._get("services")}
        present = self._endpoints(region)
        self._require_ours(region, present, services.get(COMPUTE), known)
        changed = self._ensure_region(region)
        for wanted in endpoints:
            service = services.get(wanted.type) or self._create_service(wanted)
            for interface in INTERFACES:
                changed |= self._ensure_endpoint(
                    present.get((service, interface)),
                    {"service_id": service, "interface": interface, "url": wanted.url},
                    region,
                )
        return changed

    def _endpoints(self, region: str) -> dict[tuple[str, str], Mapping[str, Any]]:
        found = self._get("endpoints", region_id=region)
        return {(one["service_id"], one["interface"]): one for one in found}

    def _require_ours(
        self,
        region: str,
        present: Mapping[tuple[str, str], Mapping[str, Any]],
        compute: str | None,
        known: Collection[str],
    ) -> None:
        for (service, _), endpoint in present.items():
            if service == compute and endpoint["url"] not in known:
                raise RegionTaken(
                    f"Region {region} of {self._url} is another cloud's, whose compute API is at "
                    f"{endpoint['url']}: choose another with --region, or delete its endpoints.",
                    region=region,
                    url=endpoint["url"],
                )

    def _ensure_region(self, region: str) -> bool:
        if any(one["id"] == region for one in self._get("regions")):
            return False
        self._session.post(f"{self._url}/regions", json={"region": {"id": region}})
        return True

    def _create_service(self, wanted: Endpoint) -> str:
        body = {"service": {"type": wanted.type, "name": wanted.name, "enabled": True}}
        answer = self._session.post(f"{self._url}/services", json=body)
        return str(answer.json()["service"]["id"])

    def _ensure_endpoint(
        self, present: Mapping[str, Any] | None, wanted: Mapping[str, str], region: str
    ) -> bool:
        if present is None:
            body = {"endpoint": {**wanted, "region_id": region, "enabled": True}}
            self._session.post(f"{self._url}/endpoints", json=body)
        elif present["url"] != wanted["url"]:
            body = {"endpoint": {"url": wanted["url"]}}
            self._session.patch(f"{self._url}/endpoints/{present['id']}", json=body)
        return present is None or present["url"] != wanted["url"]

    def _get(self, what: str, **query: str) -> list[dict[str, Any]]:
        answer = self._session.get(f"{self._url}/{what}", params=query)
        found: list[dict[str, Any]] = answer.json()[what]
        return found
