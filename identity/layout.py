"""What the embedded Keystone holds, as data: roles, projects, users, catalog."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

REGION = "RegionOne"
"""The region of a cloud that was given no other."""

INTERFACES = ("public", "internal", "admin")
PROJECTS = ("admin", "demo", "service")

GRANTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "admin": (("admin", "admin"), ("demo", "admin")),
    "demo": (("demo", "member"),),
    "demo-reader": (("demo", "reader"),),
    "micronova": (("service", "admin"), ("service", "service")),
    "micronova-api": (),
    "micronova-placement": (),
    "micronova-conductor": (("service", "service"),),
    "micronova-scheduler": (("service", "service"),),
    "micronova-compute": (("service", "agent"), ("service", "agent@*")),
}
"""{user: ((project, role), …)}. `admin` also has the admin role on the system."""

SYSTEM_GRANTS: Mapping[str, str] = {"micronova-api": "reader", "micronova-placement": "reader"}
"""{user: role on the system}, of those that check tokens, and whether projects exist."""

PEOPLE = ("admin", "demo", "demo-reader")
EMBEDDED = "micronova"
"""The user of all services, where they are one process."""
SEPARATE = tuple(user for user in GRANTS if user not in (*PEOPLE, EMBEDDED))
"""The users of separate services, each with just the roles that it needs."""

SERVICES: Mapping[str, tuple[str, str]] = {
    "compute": ("nova", "/compute/v2.1"),
    "placement": ("placement", "/placement"),
    "image": ("glance", "/image"),
    "network": ("neutron", "/network"),
    "block-storage": ("cinder", "/volume/v3"),
    "volumev3": ("cinderv3", "/volume/v3"),
    "clustering": ("senlin", "/clustering"),
}
"""{service type: (service name, path under the API's base URL)}; names as clients know them."""


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One service of the catalog; `url` is offered on every interface."""

    type: str
    name: str
    url: str


def identity_at(auth_url: str) -> Endpoint:
    """Return the catalog's entry of the Keystone where `auth_url` logs in.

    Its URL has no version, as deployment tools write it: Heat appends `/v3/ec2tokens` to it.
    """
    return Endpoint("identity", "keystone", auth_url.rstrip("/").removesuffix("/v3"))


def catalog(
    auth_url: str, base_url: str, others: Mapping[str, str] | None = None
) -> tuple[Endpoint, ...]:
    """Return the embedded cloud's catalog: identity at `auth_url`, the rest below `base_url`.

    `others`: {service type: its own URL}.
    """
    base, own = base_url.rstrip("/"), others or {}
    services = [
        Endpoint(kind, name, own.get(kind, base + path)) for kind, (name, path) in SERVICES.items()
    ]
    return (identity_at(auth_url), *services)


@dataclasses.dataclass(frozen=True)
class Job:
    """What the bootstrap child is to make true; `passwords` is {user name: password}."""

    endpoints: tuple[Endpoint, ...]
    passwords: Mapping[str, str] = dataclasses.field(repr=False)
    region: str = REGION

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON-ready data; it contains the passwords."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """Return the job that `to_dict` wrote."""
        endpoints = tuple(Endpoint(**endpoint) for endpoint in data["endpoints"])
        return cls(endpoints, dict(data["passwords"]), data["region"])
