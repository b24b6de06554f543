"""What Neutron has and a cloud of bridges has not: lists that are empty, for clients that look.

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
    """One kind of what there is none of."""

    plural: str
    """The list's name in bodies."""
    singular: str
    """Its name in sentences."""
    error: str
    """Neutron's type of the error about one that isn't there."""
    instead: str = ""
    """Another way to what a user may want, as a sentence."""


_FROM_SUBNETS = "Name the subnet's CIDR instead."
_UPSTREAM = "The operator's routers serve the bridges and VLANs that networks are."

#: path → what would be there
NOUNS: Mapping[str, Noun] = {
    "routers": Noun("routers", "Router", "RouterNotFound", _UPSTREAM),
    "floatingips": Noun(
        "floatingips",
        "Floating IP",
        "FloatingIPNotFound",
        "Servers that must be reached from outside are put on a network that is.",
    ),
    "subnetpools": Noun("subnetpools", "Subnet pool", "SubnetPoolNotFound", _FROM_SUBNETS),
    "address-scopes": Noun(
        "address_scopes", "Address scope", "AddressScopeNotFound", _FROM_SUBNETS
    ),
    "address-groups": Noun(
        "address_groups",
        "Address group",
        "AddressGroupNotFound",
        "Make a rule for each prefix, or name a security group in it.",
    ),
    "trunks": Noun(
        "trunks", "Trunk", "TrunkNotFound", "Give the server a port of each network instead."
    ),
    "segments": Noun("segments", "Segment", "SegmentNotFound"),
    "qos/policies": Noun("policies", "QoS policy", "QosPolicyNotFound"),
    "agents": Noun("agents", "Agent", "AgentNotFound"),
    "availability_zones": Noun(
        "availability_zones", "Availability zone", "AvailabilityZoneNotFound"
    ),
    "service-providers": Noun("service_providers", "Service provider", "HTTPNotFound"),
}


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
        noun = self._noun
        text = f"The resource could not be found: this cloud has no {noun.plural}. {noun.instead}"
        raise NotFound(text.replace("_", " ").strip())


class AbsentOne:
    """One of what there is none of."""

    def __init__(self, noun: Noun) -> None:
        self._noun = noun

    @operation()
    def on_get(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        self._missing(record_id)

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        self._missing(record_id)

    @operation()
    def on_delete(self, call: Call, record_id: str) -> NoReturn:
        """Answer that it isn't there."""
        self._missing(record_id)

    def _missing(self, record_id: str) -> NoReturn:
        noun = self._noun
        raise NotFound(f"{noun.singular} {record_id} could not be found.", type=noun.error)


def routes() -> dict[str, object]:
    """Path → what serves it."""
    found: dict[str, object] = {}
    for path, noun in NOUNS.items():
        found[f"/v2.0/{path}"] = Absent(noun)
        found[f"/v2.0/{path}/{{record_id}}"] = AbsentOne(noun)
    return found
