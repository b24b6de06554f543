"""What the firewall of a VM is to have for its ports' security groups. Pure.

The comment distinguishes our rules and IP sets from a person's. All rules accept, the policy
drops, so the order of ours does not matter. See docs/proxmox.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.messages.filters import Filter, FilterRule, PortFilter
from common.resources.security_rules import EVERYWHERE, ICMP, ICMP_V6, INGRESS, number

MARK = "micronova"
_RULE = f"{MARK} rule="
#: nothing passes that no rule accepts, and no port takes another's address
OPTIONS: Mapping[str, str] = {
    "enable": "1",
    "policy_in": "DROP",
    "policy_out": "DROP",
    "macfilter": "1",
    "ipfilter": "1",
    "dhcp": "1",
    "ndp": "1",
    "radv": "0",
}
#: what two rules are compared by
_COMPARED = ("type", "action", "iface", "proto", "dport", "source", "dest", "icmp-type", "comment")
#: (protocol number, type, code) → the name that pve-firewall has for it
_ICMP_NAMES: Mapping[tuple[int, int, int | None], str] = {
    **{
        (ICMP, kind, code): name
        for kind, code, name in (
            (0, None, "echo-reply"),
            (3, None, "destination-unreachable"),
            (3, 0, "network-unreachable"),
            (3, 1, "host-unreachable"),
            (3, 2, "protocol-unreachable"),
            (3, 3, "port-unreachable"),
            (3, 4, "fragmentation-needed"),
            (3, 5, "source-route-failed"),
            (3, 6, "network-unknown"),
            (3, 7, "host-unknown"),
            (3, 9, "network-prohibited"),
            (3, 10, "host-prohibited"),
            (3, 11, "TOS-network-unreachable"),
            (3, 12, "TOS-host-unreachable"),
            (3, 13, "communication-prohibited"),
            (3, 14, "host-precedence-violation"),
            (3, 15, "precedence-cutoff"),
            (4, None, "source-quench"),
            (5, None, "redirect"),
            (8, None, "echo-request"),
            (9, None, "router-advertisement"),
            (10, None, "router-solicitation"),
            (11, None, "time-exceeded"),
            (11, 0, "ttl-zero-during-transit"),
            (11, 1, "ttl-zero-during-reassembly"),
            (12, None, "parameter-problem"),
            (13, None, "timestamp-request"),
            (14, None, "timestamp-reply"),
            (17, None, "address-mask-request"),
            (18, None, "address-mask-reply"),
        )
    },
    **{
        (ICMP_V6, kind, code): name
        for kind, code, name in (
            (1, None, "destination-unreachable"),
            (1, 0, "no-route"),
            (1, 1, "communication-prohibited"),
            (1, 2, "beyond-scope"),
            (1, 3, "address-unreachable"),
            (1, 4, "port-unreachable"),
            (2, None, "packet-too-big"),
            (3, None, "time-exceeded"),
            (4, None, "parameter-problem"),
            (128, None, "echo-request"),
            (129, None, "echo-reply"),
            (133, None, "router-solicitation"),
            (134, None, "router-advertisement"),
            (135, None, "neighbour-solicitation"),
            (136, None, "neighbour-advertisement"),
            (137, None, "redirect"),
        )
    },
}
#: types whose only code is 0
_ONE_CODE = {(ICMP, 0), (ICMP, 8), (ICMP_V6, 128), (ICMP_V6, 129)}

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What a VM's firewall is to have."""

    rules: tuple[Rule, ...] = ()
    sets: Mapping[str, frozenset[str]] | None = None
    """IP set → its addresses."""
    unsaid: tuple[str, ...] = ()
    """IDs of rules that Proxmox VE has no words for: they accept nothing."""


def wanted(filter_: Filter, slots: Mapping[str, str]) -> Wanted:
    """Return the rules and IP sets of a VM; ``slots``: MAC address → ``netK``."""
    rules: list[Rule] = []
    sets: dict[str, frozenset[str]] = {}
    unsaid: list[str] = []
    for port in _filtered(filter_, slots):
        slot = slots[port.mac]
        if port.addresses is not None:
            sets[f"ipfilter-{slot}"] = addresses(port.addresses)
        for one in port.rules:
            said = _rule(one, slot)
            if said is None:
                unsaid.append(one.id)
                continue
            rules.append(said)
            remote, family = one.rule.remote, one.rule.ethertype
            if remote is not None:
                members = addresses(filter_.groups.get(remote, ()), family)
                sets[set_name(remote, family)] = members
    return Wanted(tuple(rules), sets, tuple(dict.fromkeys(unsaid)))


def _filtered(filter_: Filter, slots: Mapping[str, str]) -> Iterator[PortFilter]:
    return (port for port in filter_.ports if port.on and port.mac in slots)


def set_name(group_id: str, family: str) -> str:
    """Return the IP set of a group's members of one family: another's would open it too."""
    return f"sg-{group_id.replace('-', '')[:16]}-{family.removeprefix('IP')}"


def addresses(texts: Iterable[str], family: str | None = None) -> frozenset[str]:
    """Return addresses and ranges as Proxmox VE shows them, of one family or of both."""
    found = (ipaddress.ip_network(text, strict=False) for text in texts)
    return frozenset(
        str(one.network_address) if one.prefixlen == one.max_prefixlen else str(one)
        for one in found
        if family in (None, f"IPv{one.version}")
    )


def _rule(one: FilterRule, slot: str) -> dict[str, str] | None:
    rule = one.rule
    inward = rule.direction == INGRESS
    if rule.remote is not None:
        peer = f"+{set_name(rule.remote, rule.ethertype)}"
    else:
        peer = rule.normalized_cidr or EVERYWHERE[rule.ethertype]
    said = {
        "type": "in" if inward else "out",
        "action": "ACCEPT",
        "iface": slot,
        "source" if inward else "dest": peer,
        "comment": f"{_RULE}{one.id}",
    }
    protocol = number(rule.protocol)
    if protocol is None:
        return said
    said["proto"] = str(protocol)
    first, last = rule.port_range_min, rule.port_range_max
    if protocol in (ICMP, ICMP_V6):
        # By their names only these take a type.
        said["proto"] = "icmp" if protocol == ICMP else "ipv6-icmp"
        return said if first is None else _with_type(said, protocol, first, last)
    if protocol in (6, 17):
        said["proto"] = "tcp" if protocol == 6 else "udp"
    if first is not None:
        said["dport"] = str(first) if first == last else f"{first}:{last}"
    return said


def _with_type(
    said: dict[str, str], protocol: int, kind: int, code: int | None
) -> dict[str, str] | None:
    if code == 0 and (protocol, kind) in _ONE_CODE:
        code = None
    name = _ICMP_NAMES.get((protocol, kind, code))
    return None if name is None else said | {"icmp-type": name}


def is_ours(thing: Mapping[str, Any]) -> bool:
    """Return whether a rule or an IP set has our comment."""
    return str(thing.get("comment", "")).strip().startswith(MARK)


def surplus(present: Sequence[Rule], want: Sequence[Rule]) -> list[int]:
    """Return the positions of our rules that are to go, from the end; double ones too."""
    left = [_key(one) for one in want]
    going = []
    for one in present:
        if not is_ours(one):
            continue
        if int(one.get("enable", 0)) and _key(one) in left:
            left.remove(_key(one))
        else:
            going.append(int(one["pos"]))
    return sorted(going, reverse=True)


def missing(present: Sequence[Rule], want: Sequence[Rule]) -> list[Rule]:
    """Return the rules that are to be added, the last one first: each comes on top."""
    there = [_key(one) for one in present if is_ours(one) and int(one.get("enable", 0))]
    found = []
    for one in want:
        if _key(one) in there:
            there.remove(_key(one))
        else:
            found.append(one)
    return found[::-1]


def _key(rule: Rule) -> tuple[str, ...]:
    return tuple(str(rule.get(name, "")).strip() for name in _COMPARED)


def options(present: Mapping[str, Any], filter_: Filter) -> dict[str, str]:
    """Return the options that differ.

    ``ipfilter`` is an empty IP set for each interface that has none, so it is off where one may
    use any address; each other interface has a set of its own, which holds without it.
    ``macfilter`` is one switch for all interfaces.
    """
    on = [port for port in filter_.ports if port.on]
    want = dict(OPTIONS)
    if any(port.addresses is None for port in on):
        want["ipfilter"] = "0"
    if any(port.any_mac for port in on):
        want["macfilter"] = "0"
    return {name: text for name, text in want.items() if str(present.get(name, "")) != text}


def with_flag(text: str, on: bool) -> str:
    """Return an interface's text with the firewall on or off."""
    parts = [part for part in text.split(",") if not part.startswith("firewall=")]
    return ",".join([*parts, "firewall=1"] if on else parts)


def with_link(text: str, up: bool) -> str:
    """Return an interface's text with a link, or without one."""
    parts = [part for part in text.split(",") if not part.startswith("link_down=")]
    return ",".join(parts if up else [*parts, "link_down=1"])


def has_link(text: str) -> bool:
    """Return whether an interface has a link."""
    return "link_down=1" not in text.split(",")


def has_flag(text: str) -> bool:
    """Return whether the firewall is on for an interface."""
    return "firewall=1" in text.split(",")
