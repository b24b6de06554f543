"""Neutron's resources that a cloud of bridges lacks: empty lists, for clients that read them.

None of their extensions is announced, so that clients don't offer what isn't there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from api.plain import Call, operation
from common.errors import NotFound


@dataclass(frozen=True)
class Noun:
    """A kind of resource that this cloud does not have."""

    plural: str
    """The list's name in bodies."""
    singular: str
    """Its name in sentences."""
    error: str
    """The `type` of Neutron's not-found error for this kind."""
    instead: str = ""
    """Why this cloud has none, or an alternative for the user, as a sentence."""

    @property
    def why(self) -> str:
        """The message for every request about one."""
        return f"This cloud has no {self.several}. {self.instead}".strip()

    @property
    def several(self) -> str:
        """Its plural in sentences."""
        first = self.singular[:1]
        name = (
            self.singular if self.singular.startswith("QoS") else first.lower() + self.singular[1:]
        )
        return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


_FROM_SUBNETS = "Name the subnet's CIDR instead."
_UPSTREAM = (
    "Networks here are bridges, VLANs and VXLANs of Proxmox VE, which routes nothing: the "
    "operator's routers serve them, or a server with a port on each network does."
)
_NO_NAT = (
    "Without routers nothing translates addresses: a server that must be reached from outside is "
    "put on a network that is."
)
_ONE_NETWORK = (
    "An interface of Proxmox VE carries one network: give the server a port of each network."
)
#: also said of ``qos_policy_id`` of networks and ports
NO_QOS = "Nothing here limits or marks the traffic of interfaces."

#: path → what would be there
NOUNS: Mapping[str, Noun] = {
    "routers": Noun("routers", "Router", "RouterNotFound", _UPSTREAM),
    "floatingips": Noun("floatingips", "Floating IP", "FloatingIPNotFound", _NO_NAT),
    "floatingip_pools": Noun("floatingip_pools", "Floating IP pool", "HTTPNotFound", _NO_NAT),
    "subnetpools": Noun("subnetpools", "Subnet pool", "SubnetPoolNotFound", _FROM_SUBNETS),
    "address-scopes": Noun(
        "address_scopes", "Address scope", "AddressScopeNotFound", _FROM_SUBNETS
    ),
    "trunks": Noun("trunks", "Trunk", "TrunkNotFound", _ONE_NETWORK),
    "segments": Noun("segments", "Segment", "SegmentNotFound", "A network has one segment."),
    "qos/policies": Noun("policies", "QoS policy", "QosPolicyNotFound", NO_QOS),
    "qos/rule-types": Noun("rule_types", "QoS rule type", "QosRuleNotFound", NO_QOS),
    "agents": Noun("agents", "Agent", "AgentNotFound", "Those of hosts are compute services."),
    "availability_zones": Noun(
        "availability_zones", "Availability zone", "AvailabilityZoneNotFound"
    ),
    "service-providers": Noun("service_providers", "Service provider", "HTTPNotFound"),
}
#: extension → the path of what it would bring
_BROUGHT: Mapping[str, str] = {
    "router": "routers",
    "ext-gw-mode": "routers",
    "extraroute": "routers",
    "dvr": "routers",
    "floating-ip-port-forwarding": "floatingips",
    "trunk": "trunks",
    "trunk-details": "trunks",
    "qos": "qos/policies",
    "subnet_allocation": "subnetpools",
    "address-scope": "address-scopes",
    "segment": "segments",
}


def why(alias: str) -> str:
    """Return why an extension isn't there, as a sentence; empty: nothing can be said."""
    path = _BROUGHT.get(alias)
    return "" if path is None else NOUNS[path].why


class Absent:
    """A collection that is always empty."""

    def __init__(self, noun: Noun) -> None:
        self._noun = noun

    @operation()
    def on_get(self, call: Call) -> Any:
        """List nothing."""
        return {self._noun.plural: []}

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Answer that none can be made, as where Neutron lacks the extension: with 404."""
        raise NotFound(f"The resource could not be found. {self._noun.why}")


class AbsentOne:
    """A resource of a kind that this cloud does not have."""

    def __init__(self, noun: Noun) -> None:
        self._noun = noun

    @operation()
    def on_get(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        raise missing(self._noun, record_id)

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        raise missing(self._noun, record_id)

    @operation()
    def on_delete(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        raise missing(self._noun, record_id)


class AbsentPart:
    """What would belong to one: its interfaces, rules, ports or tags."""

    def __init__(self, noun: Noun) -> None:
        self._noun = noun

    @operation()
    def on_get(self, call: Call, record_id: str, **_: str) -> NoReturn:
        """Answer that the whole isn't there."""
        raise missing(self._noun, record_id)

    @operation()
    def on_post(self, call: Call, record_id: str, **_: str) -> NoReturn:
        """Answer that the whole isn't there."""
        raise missing(self._noun, record_id)

    @operation()
    def on_put(self, call: Call, record_id: str, **_: str) -> NoReturn:
        """Answer that the whole isn't there."""
        raise missing(self._noun, record_id)

    @operation()
    def on_delete(self, call: Call, record_id: str, **_: str) -> NoReturn:
        """Answer that the whole isn't there."""
        raise missing(self._noun, record_id)


def missing(noun: Noun, record_id: str) -> NotFound:
    """Return the refusal of a request about a kind that this cloud does not have."""
    return NotFound(f"{noun.singular} {record_id} could not be found. {noun.why}", type=noun.error)


def routes() -> dict[str, object]:
    """Path → what serves it."""
    found: dict[str, object] = {}
    for path, noun in NOUNS.items():
        found[f"/v2.0/{path}"] = Absent(noun)
        found[f"/v2.0/{path}/{{record_id}}"] = AbsentOne(noun)
        found[f"/v2.0/{path}/{{record_id}}/{{part}}"] = AbsentPart(noun)
        found[f"/v2.0/{path}/{{record_id}}/{{part}}/{{part_id}}"] = AbsentPart(noun)
    return found
