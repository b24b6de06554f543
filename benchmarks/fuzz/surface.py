"""The requests to make: paths, methods, and the schemas of bodies and query strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from api.clustering import routes as clustering
from api.compute import routes
from api.image import app as image
from api.network import absent as network_absent
from api.network import app as network
from api.volume import routes as volume
from api.volume.resources import absent as volume_absent
from benchmarks.fuzz import definitions
from benchmarks.fuzz.clustering import filled
from placement import routes as placement
from placement.schemas import allocations, inventories, memberships, providers
from web.guard import operation_of
from web.microversions import Versioned
from web.schemas import Validator

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

#: actions that unmanage a server's VM, which an audit rightly reports
_LEAVES = {"release", "forget"}

#: examples of the paths of absent things, which are all served alike
_ABSENT = ("/v2.0/routers", "/groups")

_ID = {"type": "string", "format": "uuid"}
_TEXT = {"type": "string"}
_TIME = {"type": "string", "enum": ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "x"]}


def _body(kind: str, needed: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a body that holds one object."""
    one = {"type": "object", "properties": {**needed, **more}, "required": list(needed)}
    return {"type": "object", "properties": {kind: one}, "required": [kind]}


_LOGIN = {
    "type": "object",
    "properties": {
        "methods": {"enum": [["password"], ["token"], ["application_credential"], ["totp"]]},
        "password": _body("user", {"name": _TEXT, "password": _TEXT}, domain=_body("x", {})),
        "token": {"type": "object", "properties": {"id": _TEXT}},
        "application_credential": {"type": "object", "properties": {"id": _ID, "secret": _TEXT}},
    },
    "required": ["methods"],
}
_NEW = {"name": _TEXT, "domain_id": {"enum": ["default"]}}
_OPTIONS: Mapping[str, Any] = {
    "description": _TEXT,
    "enabled": {"type": "boolean"},
    "tags": {"type": "array", "items": _TEXT},
    "options": {"type": "object"},
    "expires_at": _TIME,
    "x": _TEXT,
}
#: {path: what is sent there}
IDENTITY: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("/v3", "/v3/auth/catalog", "/v3/auth/projects", "/v3/nothing"), ()),
    **dict.fromkeys(("/v3/limits", "/v3/registered_limits", "/v3/role_assignments"), ()),
    **dict.fromkeys(("/v3/OS-REVOKE/events", "/v3/OS-INHERIT/x", "/v3/users/{id}/groups"), ()),
    "/v3/auth/tokens": (_body("auth", {"identity": _LOGIN}, scope=_body("project", _NEW)),),
    "/v3/users": (_body("user", _NEW, default_project_id=_ID, password=_TEXT, **_OPTIONS),),
    "/v3/users/{id}": (_body("user", {}, **_NEW, **_OPTIONS),),
    "/v3/projects": (_body("project", _NEW, parent_id=_ID, **_OPTIONS),),
    "/v3/projects/{id}": (_body("project", {}, **_NEW, **_OPTIONS),),
    "/groups": (_body("group", _NEW, **_OPTIONS),),
    "/v3/roles": (_body("role", {"name": _TEXT}, **_OPTIONS),),
    "/v3/domains": (_body("domain", {"name": _TEXT}, **_OPTIONS),),
    "/v3/services": (_body("service", {"type": _TEXT}, name=_TEXT, **_OPTIONS),),
    "/v3/regions": (_body("region", {"id": _TEXT}, parent_region_id=_ID, **_OPTIONS),),
    "/v3/endpoints": (_body("endpoint", {"url": _TEXT, "service_id": _ID}, interface=_TEXT),),
    "/v3/credentials": (_body("credential", {"blob": _TEXT, "type": _TEXT}, user_id=_ID),),
    "/v3/policies": (_body("policy", {"blob": _TEXT, "type": _TEXT}, **_OPTIONS),),
    "/v3/OS-TRUST/trusts": (_body("trust", {"trustor_user_id": _ID}, **_OPTIONS),),
    "/v3/users/{id}/application_credentials": (
        _body("application_credential", {"name": _TEXT}, secret=_TEXT, **_OPTIONS),
    ),
}
_IDENTITY_QUERY = (
    *("limit", "marker", "name", "name__contains", "sort_key", "domain_id", "enabled", "since"),
    *("password_expires_at", "parent_id", "tags", "user.id", "scope.project.id", "allow_expired"),
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
    found = [*_compute(), *_placement(), *_image(), *_network(), *_volume()]
    found += _clustering()
    found += _identity()
    documents = (
        "/",
        "/compute",
        "/compute/v2.1/",
        "/placement/",
        "/image/",
        "/network/v2.0",
        "/volume/",
        "/volume/v3/",
        "/clustering/",
        "/clustering/v1/",
    )
    return found + [Target("versions", "GET", path) for path in documents]


def _identity() -> Iterator[Target]:
    for path, bodies in IDENTITY.items():
        methods = ("GET", "PATCH", "DELETE") if path.endswith("{id}") else ("GET", "POST")
        for method in methods:
            yield Target("identity", method, path, bodies, _IDENTITY_QUERY)


def _known(described: Versioned[Validator | None] | None) -> list[Any]:
    return [each.schema for _, each in described.items() if each] if described else []


def _compute() -> Iterator[Target]:
    for row in routes.ROUTES:
        path = f"/compute/v2.1{row.path}"
        for method in row.methods:
            for handler in row.handlers(method):
                described = operation_of(handler)
                bodies = _known(described.body)
                query = _known(described.query)
                names = sorted({name for each in query for name in each.get("properties", {})})
                yield Target("compute", method, path, tuple(bodies), tuple(names))
        for action, handler in row.acting().items():
            if action not in _LEAVES:
                bodies = _known(operation_of(handler).body)
                yield Target("compute", "POST", path, tuple(bodies), action=action)


_VOLUME_QUERY = (
    *("limit", "marker", "offset", "sort", "sort_key", "sort_dir", "name", "name~", "status"),
    *("metadata", "bootable", "availability_zone", "created_at", "all_tenants", "with_count"),
    *("size", "usage", "is_public", "force", "cascade", "detail", "volume_type", "x"),
)


def _volume() -> Iterator[Target]:
    below = [(volume.VERSION, row) for row in volume.ROUTES]
    for prefix, row in [*(("", row) for row in volume.VERSIONS), *below]:
        if row in volume_absent.ROUTES and not row.path.startswith(_ABSENT):
            continue
        path = f"/volume{prefix}{row.path}"
        for method in row.methods:
            for handler in row.handlers(method):
                bodies = tuple(_known(operation_of(handler).body))
                yield Target("volume", method, path, bodies, _VOLUME_QUERY)
        for action, handler in row.acting().items():
            bodies = tuple(_known(operation_of(handler).body))
            yield Target("volume", "POST", path, bodies, action=action)


_CLUSTERING_QUERY = (
    *("limit", "marker", "sort", "name", "status", "type", "global_project", "cluster_id"),
    *("action", "target", "oid", "show_details", "policy_name", "policy_type", "V", "key", "x"),
)


def _clustering() -> Iterator[Target]:
    for row in clustering.ROUTES:
        path = f"/clustering{clustering.VERSION}{row.path}"
        for method in row.methods:
            for handler in row.handlers(method):
                bodies = tuple(map(filled, _known(operation_of(handler).body)))
                yield Target("clustering", method, path, bodies, _CLUSTERING_QUERY)
        for action, handler in row.acting().items():
            bodies = tuple(_known(operation_of(handler).body))
            yield Target("clustering", "POST", path, bodies, action=action)


def _schemas(module: ModuleType) -> tuple[Any, ...]:
    versioned = [value for name, value in vars(module).items() if name.isupper()]
    return tuple(
        schema
        for each in versioned
        if isinstance(each, Mapping)
        for version, schema in each.items()
        if "." in version and isinstance(schema, dict)
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


_NEW_IMAGE = {
    "type": "object",
    "properties": {
        "id": _ID,
        "name": _TEXT,
        "visibility": {"enum": ["private", "shared", "community", "public", "x"]},
        "disk_format": {"enum": ["raw", "qcow2", "vhd", None]},
        "tags": {"type": "array", "items": _TEXT},
        "min_disk": {"type": "integer"},
        "protected": {"type": "boolean"},
        "a.b:c": _TEXT,
    },
}
_STEP = {
    "type": "object",
    "properties": {
        "op": {"enum": ["add", "replace", "remove", "x"]},
        "path": {"enum": ["/name", "/tags", "/x", "/min_ram", "/visibility", "/id", "x", "/a~1b"]},
        "value": {"enum": ["x", "", None, 1, -1, ["x"], {}, "private", True]},
    },
    "required": ["op", "path", "value"],
}
_IMPORT = {
    "type": "object",
    "properties": {
        "method": {
            "type": "object",
            "properties": {
                "name": {"enum": ["glance-direct", "web-download", "x", None, []]},
                "uri": {"enum": ["http://127.0.0.1/", "file:///etc/passwd", "x", 3]},
            },
            "required": ["name"],
        }
    },
    "required": ["method"],
}
_IMAGE_BODIES: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("POST", "images"): (_NEW_IMAGE,),
    ("PATCH", "{image_id}"): ({"type": "array", "items": _STEP},),
    ("POST", "import"): (_IMPORT,),
    ("POST", "members"): ({"type": "object", "properties": {"member": _TEXT}},),
    ("PUT", "{member_id}"): ({"type": "object", "properties": {"status": _TEXT}},),
}


def _image() -> Iterator[Target]:
    names = (
        *("limit", "marker", "sort", "sort_key", "sort_dir", "name", "id", "size_min", "tag"),
        *("created_at", "visibility", "os_hidden", "member_status", "min_ram", "x", "status"),
        *("resource_type", "resource_types", "visibility", "owner"),
    )
    nothing: Any = None
    for path, resource in image.routes(nothing, nothing, nothing, nothing).items():
        for method in _methods(type(resource)):
            bodies = _IMAGE_BODIES.get((method, path.rpartition("/")[2]), ({"type": "object"},))
            if method in ("POST", "PUT") and "/metadefs/" in path:
                bodies = definitions.bodies_at(path)
            yield Target("image", method, f"/image{path}", bodies, names)


_ADDRESS = {"enum": ["10.20.0.77", "10.20.0.1", "::1", "10.20.0.999", "fe80::1%x"]}
_FIXED_IPS = {
    "type": "array",
    "items": {"type": "object", "properties": {"ip_address": _ADDRESS, "subnet_id": _ID}},
}
_PORT_VALUES: Mapping[str, Any] = {
    **{"name": _TEXT, "description": _TEXT, "project_id": _TEXT, "device_id": _TEXT, "x": _TEXT},
    **{"fixed_ips": _FIXED_IPS, "admin_state_up": {"type": "boolean"}},
    "mac_address": {"enum": ["fa:16:3e:00:00:77", "FA-16-3E-00-00-78", "00:00:00:00:00:00", ""]},
    "security_groups": {"type": "array", "items": _ID},
    "allowed_address_pairs": {
        "type": "array",
        "items": {"type": "object", "properties": {"ip_address": _ADDRESS, "mac_address": _TEXT}},
    },
    "port_security_enabled": {"type": "boolean"},
    "binding:host_id": _TEXT,
    "admin_state_up": {"type": "boolean"},
}
_GROUP_VALUES: Mapping[str, Any] = {
    **{"name": _TEXT, "description": _TEXT, "project_id": _TEXT, "x": _TEXT},
    "stateful": {"type": "boolean"},
}
_RULE_NEW = _body(
    "security_group_rule",
    {"security_group_id": _ID, "direction": {"enum": ["ingress", "egress", "x"]}},
    ethertype={"enum": ["IPv4", "ipv6", "x"]},
    protocol={"enum": [None, "tcp", "icmp", "icmpv6", "6", 300, "any", "x", []]},
    port_range_min={"enum": [None, 0, 22, "22", 70000, -1, "x"]},
    port_range_max={"enum": [None, 22, 65535, {}]},
    remote_ip_prefix={"enum": [None, "10.0.0.0/8", "::/0", "10.0.0.1/24", "x", 3]},
    remote_group_id=_ID,
    remote_address_group_id=_ID,
    description=_TEXT,
)
_PORT_NEW = _body("port", {"network_id": _ID}, **_PORT_VALUES)
_ON_OFF = {"type": "boolean"}
_NETWORK_VALUES: Mapping[str, Any] = {
    **{"name": _TEXT, "description": _TEXT, "project_id": _TEXT, "x": _TEXT},
    **{"shared": _ON_OFF, "router:external": _ON_OFF, "admin_state_up": _ON_OFF},
    **{"is_default": _ON_OFF, "port_security_enabled": _ON_OFF, "qos_policy_id": _TEXT},
    "mtu": {"enum": [0, 67, 1280, 1500, 65521, "9000"]},
    "provider:network_type": {"enum": ["vlan", "flat", "vxlan", None]},
    "provider:physical_network": {"enum": ["vmbr0", "vmbr9", "", None]},
    "provider:segmentation_id": {"enum": [0, 1, 1000, 4094, 4095, 2**31, "x"]},
}
_END = {"enum": ["10.77.0.3", "10.77.0.9", "10.88.0.1", "fd00::3", "x"]}
_POOL = {
    "type": "object",
    "properties": {"start": _END, "end": _END},
    "required": ["start", "end"],
}
_ROUTE = {
    "type": "object",
    "properties": {"destination": {"enum": ["10.99.0.0/16", "::/0", "x"]}, "nexthop": _END},
}
_SUBNET_VALUES: Mapping[str, Any] = {
    **{"name": _TEXT, "description": _TEXT, "enable_dhcp": _ON_OFF, "x": _TEXT},
    "gateway_ip": {"enum": ["10.77.0.1", "10.77.0.255", "fd00::1", None]},
    "allocation_pools": {"type": "array", "items": _POOL},
    "dns_nameservers": {"type": "array", "items": _END},
    "host_routes": {"type": "array", "items": _ROUTE},
}
_SUBNET_NEW = _body(
    "subnet",
    {
        "network_id": _ID,
        "ip_version": {"enum": [4, 6, "4", 5]},
        "cidr": {"enum": ["10.77.0.0/24", "10.78.0.0/31", "fd00::/64", "::/0", "10.77.0.9", None]},
    },
    **_SUBNET_VALUES,
    ipv6_ra_mode={"enum": ["slaac", "dhcpv6-stateful", "x"]},
)
_LIMIT = {"enum": [-2, -1, 0, 5, "7", 2**31, "x", None, True]}
_PREFIXES = {
    "type": "array",
    "items": {"enum": ["10.0.0.0/8", "10.0.0.1", "10.0.0.1/9", "fd00::/64", "::", "x", 3]},
}
_ADDRESS_GROUP_VALUES: Mapping[str, Any] = {
    **{"name": _TEXT, "description": _TEXT, "project_id": _TEXT, "x": _TEXT},
    "addresses": _PREFIXES,
}
_ADDRESSES = {"type": "object", "properties": {"addresses": _PREFIXES, "x": _TEXT}}
_DEFAULT_RULE_NEW = _body(
    "default_security_group_rule",
    {"direction": {"enum": ["ingress", "egress", "x"]}},
    ethertype={"enum": ["IPv4", "ipv6", "x"]},
    protocol={"enum": [None, "tcp", "icmp", 300, "x", []]},
    port_range_min={"enum": [None, 0, 22, 70000, -1, "x"]},
    port_range_max={"enum": [None, 22, 65535, {}]},
    remote_group_id={"enum": [None, "PARENT", "x", 3]},
    used_in_default_sg=_ON_OFF,
    used_in_non_default_sg=_ON_OFF,
)
_QUOTA = _body(
    "quota", {}, network=_LIMIT, port=_LIMIT, router=_LIMIT, x=_LIMIT, force={"type": "boolean"}
)
_TAGS = {"type": "object", "properties": {"tags": {"type": "array", "items": _TEXT}}}
#: {path: what is sent there}
_NETWORK: Mapping[str, tuple[Any, ...]] = {
    "/v2.0/ports": (
        _PORT_NEW,
        {"type": "object", "properties": {"ports": {"type": "array", "items": _PORT_NEW}}},
    ),
    "/v2.0/ports/{record_id}": (_body("port", {}, **_PORT_VALUES),),
    "/v2.0/networks": (_body("network", {}, **_NETWORK_VALUES),),
    "/v2.0/networks/{record_id}": (_body("network", {}, **_NETWORK_VALUES),),
    "/v2.0/rbac-policies": (
        _body(
            "rbac_policy",
            {
                "object_type": {
                    "enum": ["network", "security_group", "address_group", "qos_policy"]
                },
                "object_id": _ID,
                "target_tenant": {"enum": ["other", "*", ""]},
                "action": {"enum": ["access_as_shared", "access_as_external"]},
            },
        ),
    ),
    "/v2.0/rbac-policies/{record_id}": (_body("rbac_policy", {"target_tenant": _TEXT}),),
    "/v2.0/subnets": (_SUBNET_NEW,),
    "/v2.0/subnets/{record_id}": (_body("subnet", {}, **_SUBNET_VALUES),),
    "/v2.0/quotas/{project_id}": (_QUOTA,),
    "/v2.0/address-groups": (_body("address_group", {}, **_ADDRESS_GROUP_VALUES),),
    "/v2.0/address-groups/{record_id}": (_body("address_group", {}, **_ADDRESS_GROUP_VALUES),),
    "/v2.0/address-groups/{record_id}/add_addresses": (_ADDRESSES,),
    "/v2.0/address-groups/{record_id}/remove_addresses": (_ADDRESSES,),
    "/v2.0/default-security-group-rules": (_DEFAULT_RULE_NEW,),
    "/v2.0/security-groups": (_body("security_group", {}, **_GROUP_VALUES),),
    "/v2.0/security-groups/{record_id}": (_body("security_group", {}, **_GROUP_VALUES),),
    "/v2.0/security-group-rules": (
        _RULE_NEW,
        {
            "type": "object",
            "properties": {"security_group_rules": {"type": "array", "items": _RULE_NEW}},
        },
    ),
}


def _network() -> Iterator[Target]:
    names = (
        *("limit", "marker", "sort_key", "sort_dir", "fields", "page_reverse", "name", "id"),
        *("fixed_ips", "mac_address", "status", "shared", "mtu", "cidr", "ip_version", "tags"),
        *("security_groups", "protocol", "port_range_min", "remote_group_id", "project_id"),
    )
    nothing: Any = None
    conductor: Any = object()
    for path, resource in network.routes(nothing, nothing, nothing, conductor).items():
        if path in network_absent.routes() and not path.startswith(_ABSENT):
            continue
        bodies = (_TAGS,) if path.endswith("/tags") else _NETWORK.get(path, ({"type": "object"},))
        for method in _methods(type(resource)):
            yield Target("network", method, f"/network{path}", bodies, names)


def _methods(resource: Any) -> list[str]:
    return [method for method in METHODS if hasattr(resource, f"on_{method.lower()}")]
