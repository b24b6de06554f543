"""Security group rules: protocols, and when two rules say the same (pure).

Names, numbers and refusals are Neutron's: neutron_lib/constants.py (IP_PROTOCOL_MAP) and
neutron/db/securitygroups_db.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INGRESS, EGRESS = "ingress", "egress"
DIRECTIONS = (INGRESS, EGRESS)
IPV4, IPV6 = "IPv4", "IPv6"
ETHERTYPES = (IPV4, IPV6)
#: the prefix of all addresses of a family
EVERYWHERE: Mapping[str, str] = {IPV4: "0.0.0.0/0", IPV6: "::/0"}
DEFAULT = "default"
#: the remote group of a default rule: the new group itself
PARENT = "PARENT"

#: name → number, in the order in which Neutron lists them
PROTOCOLS: Mapping[str, int] = {
    "ah": 51,
    "dccp": 33,
    "egp": 8,
    "esp": 50,
    "gre": 47,
    "hopopt": 0,
    "icmp": 1,
    "igmp": 2,
    "ip": 0,
    "ipip": 4,
    "ipv6-encap": 41,
    "ipv6-frag": 44,
    "ipv6-icmp": 58,
    "icmpv6": 58,
    "ipv6-nonxt": 59,
    "ipv6-opts": 60,
    "ipv6-route": 43,
    "ospf": 89,
    "pgm": 113,
    "rsvp": 46,
    "sctp": 132,
    "tcp": 6,
    "udp": 17,
    "udplite": 136,
    "vrrp": 112,
}
#: names of protocols whose rules may name ports
WITH_PORTS = ("dccp", "sctp", "tcp", "udp", "udplite")
PORT_NUMBERS = frozenset(PROTOCOLS[name] for name in WITH_PORTS)
ICMP, ICMP_V6 = PROTOCOLS["icmp"], PROTOCOLS["ipv6-icmp"]
#: numbers of protocols that only IPv6 has
ONLY_V6 = frozenset(
    PROTOCOLS[f"ipv6-{name}"] for name in ("encap", "frag", "icmp", "nonxt", "opts", "route")
)


def number(protocol: str | None) -> int | None:
    """Return a protocol's number; None: any."""
    if protocol is None:
        return None
    return PROTOCOLS[protocol] if protocol in PROTOCOLS else int(protocol)


@dataclass(frozen=True)
class Rule:
    """What a rule allows; a protocol is a name or a number, None: any."""

    direction: str
    ethertype: str = IPV4
    protocol: str | None = None
    port_range_min: int | None = None
    """The first port, or the ICMP type."""
    port_range_max: int | None = None
    """The last port, or the ICMP code."""
    remote_ip_prefix: str | None = None
    normalized_cidr: str | None = None
    """The prefix without the bits of a host."""
    remote_group_id: str | None = None
    remote_address_group_id: str | None = None

    @property
    def remote(self) -> str | None:
        """Return the group whose addresses it allows, of ports or of prefixes."""
        return self.remote_group_id or self.remote_address_group_id

    def meaning(self) -> str:
        """Return what the rule says, the same for two that Neutron calls duplicates."""
        prefix = self.remote_ip_prefix
        if prefix in EVERYWHERE.values():
            prefix = None
        said = (
            *(self.direction, self.ethertype, number(self.protocol)),
            *(self.port_range_min, self.port_range_max, prefix, self.remote),
        )
        return " ".join("-" if one is None else str(one) for one in said)


#: the default rules that a cloud begins with: all out, and in a default group its members
FIRST_DEFAULTS = (
    *(Rule(EGRESS, family) for family in ETHERTYPES),
    *(Rule(INGRESS, family, remote_group_id=PARENT) for family in ETHERTYPES),
)
