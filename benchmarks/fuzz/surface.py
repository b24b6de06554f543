"""What there is to ask: paths, methods, and the schemas of bodies and query strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from api.compute import routes
from api.compute.operation import operation_of
from api.image import app as image
from api.network import app as network
from placement import routes as placement
from placement.schemas import allocations, inventories, memberships, providers

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

#: actions that leave a server's VM to somebody else, which an audit rightly tells
_LEAVES = {"release", "forget"}

IDENTITY = (
    *("/v3", "/v3/auth/tokens", "/v3/auth/catalog", "/v3/auth/projects", "/v3/users", "/v3/roles"),
    *("/v3/users/{id}", "/v3/projects", "/v3/projects/{id}", "/v3/services", "/v3/endpoints"),
    *("/v3/users/{id}/application_credentials", "/v3/domains", "/v3/nothing", "/v3/limits"),
)


@dataclass(frozen=True)
class Target:
    """One method of one path of one API."""

    api: str
    method: str
    path: str
    """With names in braces."""
    bodies: tuple[Any, ...] = ()
    queries: tuple[str, ...] = ()
    action: str = ""


def targets() -> list[Target]:
    """Return everything that the APIs answer, in a fixed order."""
    found = [*_compute(), *_placement(), *_image(), *_network()]
    found += [Target("identity", method, path) for path in IDENTITY for method in ("GET", "POST")]
    documents = ("/", "/compute", "/compute/v2.1/", "/placement/", "/image/", "/network/v2.0")
    return found + [Target("versions", "GET", path) for path in documents]


def _compute() -> Iterator[Target]:
    for row in routes.ROUTES:
        path = f"/compute/v2.1{row.path}"
        for method in row.methods:
            for name in row.names(method):
                described = operation_of(getattr(row.resource, name))
                bodies = [v.schema for _, v in described.body.items()] if described.body else []
                query = [v.schema for _, v in described.query.items()] if described.query else []
                names = sorted({name for each in query for name in each.get("properties", {})})
                yield Target("compute", method, path, tuple(bodies), tuple(names))
        for action, name in row.actions.items():
            if action not in _LEAVES:
                described = operation_of(getattr(row.resource, name))
                bodies = [v.schema for _, v in described.body.items()] if described.body else []
                yield Target("compute", "POST", path, tuple(bodies), action=action)


def _schemas(module: ModuleType) -> tuple[Any, ...]:
    versioned = [value for name, value in vars(module).items() if name.isupper()]
    return tuple(
        schema
        for each in versioned
        if isinstance(each, Mapping)
        for version, schema in each.items()
        if isinstance(version, tuple) and isinstance(schema, dict)
    )


_QUERY = (
    *("resources", "resources1", "resources_A", "required", "required1", "member_of", "limit"),
    *("group_policy", "in_tree", "same_subtree", "root_required", "name", "uuid", "project_id"),
    *("user_id", "consumer_type", "associated"),
)
_BODIES = {
    "allocations": _schemas(allocations),
    "reshaper": _schemas(allocations),
    "inventories": _schemas(inventories),
}


def _placement() -> Iterator[Target]:
    other = _schemas(memberships) + _schemas(providers)
    for path, resource in placement.ROUTES.items():
        bodies = next((found for name, found in _BODIES.items() if name in path), other)
        for method in _methods(resource):
            yield Target("placement", method, f"/placement{path}", bodies, _QUERY)


def _image() -> Iterator[Target]:
    names = ("limit", "marker", "sort", "sort_key", "sort_dir", "name", "id", "size_min", "tag")
    names += ("created_at", "visibility", "os_hidden", "member_status", "min_ram", "x", "status")
    nothing: Any = None
    for path, resource in image._routes(nothing).items():
        for method in _methods(type(resource)):
            yield Target("image", method, f"/image{path}", ({"type": "object"},), names)


def _network() -> Iterator[Target]:
    names = ("limit", "marker", "sort_key", "sort_dir", "fields", "page_reverse", "name", "id")
    names += ("fixed_ips", "mac_address", "status", "shared", "mtu", "cidr", "ip_version", "tags")
    nothing: Any = None
    for path, resource in network._routes(nothing, nothing).items():
        for method in _methods(type(resource)):
            yield Target("network", method, f"/network{path}", ({"type": "object"},), names)


def _methods(resource: Any) -> list[str]:
    return [method for method in METHODS if hasattr(resource, f"on_{method.lower()}")]
