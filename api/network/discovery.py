"""Discovery: versions, resources and extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import absent
from api.network.resources import KINDS
from api.plain import Call, operation
from common.errors import NotFound

#: alias → (name, description, when Neutron introduced it); only what is served
EXTENSIONS: Mapping[str, tuple[str, str, str]] = {
    "project-id": (
        "project_id field enabled",
        "Resources show project_id beside tenant_id.",
        "2016-09-09T09:09:09-09:09",
    ),
    "external-net": (
        "Neutron external network",
        "All projects may use networks with router:external.",
        "2013-01-14T10:00:00-00:00",
    ),
    "net-mtu": ("Network MTU", "Networks show their MTU.", "2015-03-25T10:00:00-00:00"),
    "net-mtu-writable": (
        "Network MTU (writable)",
        "The MTU of a network can be chosen and changed.",
        "2017-07-12T00:00:00-00:00",
    ),
    "standard-attr-description": (
        "standard-attr-description",
        "Networks, subnets and ports have a description.",
        "2016-02-10T10:00:00-00:00",
    ),
    "provider": (
        "Provider Network",
        "Networks show the bridge and VLAN they are, which administrators choose.",
        "2012-09-07T10:00:00-00:00",
    ),
    "binding": (
        "Port Binding",
        "Ports show where they are plugged in.",
        "2014-02-03T10:00:00-00:00",
    ),
    "port-security": (
        "Port Security",
        "Networks and ports show, and say, whether they are filtered.",
        "2012-07-23T10:00:00-00:00",
    ),
    "security-group": (
        "security-group",
        "Ports are in groups, which have rules.",
        "2012-10-05T10:00:00-00:00",
    ),
    "security-groups-normalized-cidr": (
        "Normalized CIDR field for security group rules",
        "Rules show their prefix without the bits of a host.",
        "2020-07-28T10:00:00-00:00",
    ),
    "security-groups-shared-filtering": (
        "Security group filtering on the shared field",
        "Groups can be filtered by whether they are shared.",
        "2021-10-05T09:00:00-00:00",
    ),
    "port-security-groups-filtering": (
        "Port filtering on security groups",
        "Ports can be filtered by their security groups.",
        "2018-01-09T09:00:00-00:00",
    ),
    "allowed-address-pairs": (
        "Allowed Address Pairs",
        "Ports may use more addresses than their own.",
        "2013-07-23T10:00:00-00:00",
    ),
    "quotas": (
        "Quota management support",
        "Projects have limits, which administrators set.",
        "2012-07-29T10:00:00-00:00",
    ),
    "quota_details": (
        "Quota details management support",
        "Limits can be seen with what is used.",
        "2017-02-10T10:00:00-00:00",
    ),
    "rbac-policies": (
        "RBAC Policies",
        "Networks and groups are shared with other projects.",
        "2015-06-17T12:15:12-00:00",
    ),
    "quota-check-limit": (
        "Quota engine limit check",
        "A limit isn't set below what is used, unless that is forced.",
        "2021-09-08T16:00:00-00:00",
    ),
    "quota-check-limit-default": (
        "Quota engine limit check by default",
        "What is used is looked at without asking for it.",
        "2024-08-21T16:00:00-00:00",
    ),
    "standard-attr-timestamp": (
        "Resource timestamps",
        "Everything shows when it was made, and changed last.",
        "2016-09-12T10:00:00-00:00",
    ),
    "standard-attr-revisions": (
        "Resource revision numbers",
        "Everything shows a number that each change raises.",
        "2016-04-11T10:00:00-00:00",
    ),
    "revision-if-match": (
        "If-Match constraints based on revision_number",
        "A change can be of one revision alone.",
        "2016-12-11T00:00:00-00:00",
    ),
    "stateful-security-group": (
        "Stateful security group",
        "Groups show what was asked; connections are tracked in any case.",
        "2019-11-26T09:00:00-00:00",
    ),
    "network-ip-availability": (
        "Network IP Availability",
        "Administrators see how many addresses of networks are in use.",
        "2015-09-24T00:00:00-00:00",
    ),
    "address-group": (
        "Address group",
        "Prefixes have groups, which are changed in one place.",
        "2020-07-15T10:00:00-00:00",
    ),
    "security-groups-remote-address-group": (
        "Remote address group id field for security group rules",
        "Rules name address groups.",
        "2020-08-25T10:00:00-00:00",
    ),
    "rbac-security-groups": (
        "Add security_group type to network RBAC",
        "Security groups are shared with other projects.",
        "2019-02-14T00:00:00-00:00",
    ),
    "rbac-address-group": (
        "Add address_group type to RBAC",
        "Address groups are shared with other projects.",
        "2021-01-20T00:00:00-00:00",
    ),
    "security-groups-default-rules": (
        "Default rules for security groups",
        "Administrators choose the rules that new groups begin with.",
        "2022-12-19T10:00:00-00:00",
    ),
    "auto-allocated-topology": (
        "Auto Allocated Topology Services",
        "Servers get a network without naming one.",
        "2016-01-01T00:00:00-00:00",
    ),
    "standard-attr-tag": (
        "Tag support for resources with standard attribute: network, subnet, port",
        "Networks, subnets, ports and security groups have tags.",
        "2017-01-01T00:00:00-00:00",
    ),
    "tag-ports-during-bulk-creation": (
        "Tag Ports During Bulk Creation",
        "Ports can be made with their tags.",
        "2019-12-29T19:00:00-00:00",
    ),
    "pagination": ("Pagination support", "Lists have pages.", "2016-06-12T00:00:00-00:00"),
    "sorting": ("Sorting support", "Lists can be sorted.", "2016-06-12T00:00:00-00:00"),
    "filter-validation": (
        "Filter parameters validation",
        "A filter that doesn't exist is refused.",
        "2018-07-04T10:00:00-00:00",
    ),
    "sort-key-validation": (
        "Sort keys validation",
        "A sort key that doesn't exist is refused.",
        "2018-07-04T10:00:00-00:00",
    ),
    "empty-string-filtering": (
        "Empty String Filtering Extension",
        "A filter may be an empty text.",
        "2018-05-01T10:00:00-00:00",
    ),
    "ip-substring-filtering": (
        "IP address substring filtering",
        "Ports can be filtered by a part of an address.",
        "2017-11-28T09:00:00-00:00",
    ),
}


class Versions:
    """`GET /`: needs no token."""

    @operation()
    def on_get(self, call: Call) -> Any:
        """List the versions."""
        links = [{"rel": "self", "href": f"{call.root}/v2.0/"}]
        return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}


def anonymous(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in {"", "/"}


class Index:
    """`GET /v2.0/`."""

    @operation()
    def on_get(self, call: Call) -> Any:
        """List the core resources."""
        base = f"{call.root}/v2.0"
        resources = [
            {
                "name": kind.singular,
                "collection": kind.plural,
                "links": [{"rel": "self", "href": f"{base}/{kind.path}"}],
            }
            for kind in KINDS
        ]
        return {"resources": resources}


class Extensions:
    """All extensions."""

    @operation()
    def on_get(self, call: Call) -> Any:
        """List extensions."""
        return {"extensions": [_extension(alias) for alias in EXTENSIONS]}


class Extension:
    """One extension."""

    @operation()
    def on_get(self, call: Call, alias: str) -> Any:
        """Show an extension."""
        if alias not in EXTENSIONS:
            reason = absent.why(alias)
            text = f"Extension with alias {alias} does not exist"
            raise NotFound(f"{text}. {reason}" if reason else text)
        return {"extension": _extension(alias)}


def _extension(alias: str) -> dict[str, object]:
    name, description, updated = EXTENSIONS[alias]
    return {
        "alias": alias,
        "name": name,
        "description": description,
        "updated": updated,
        "links": [],
    }
