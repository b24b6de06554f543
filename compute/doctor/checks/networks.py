"""Bridges, their VLANs, and the migration network."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from shlex import quote

from common.findings import Finding, Level
from compute.doctor.facts import Answer, Facts

_BRIDGES = frozenset({"bridge", "OVSBridge"})
_APPLY = "pvesh set /nodes/{}/network"


def alike(facts: Facts) -> Iterator[Finding]:
    """Yield bridges that only some nodes have, or whose VLANs or MTU differ."""
    bridges = _bridges(facts)
    nodes = _readable_nodes(facts)
    for name, by_node in sorted(bridges.items()):
        lack = [node for node in nodes if node not in by_node]
        if lack:
            yield Finding(
                "bridges_differ",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"Bridge {name} is on {', '.join(sorted(by_node))}, and not on {', '.join(lack)}.",
                "Servers on its network are neither built on the others nor moved there.",
                tuple(_made(name, by_node[min(by_node)], lack)),
            )
        yield from _differ(facts, name, by_node, "vlans_differ", "VLANs", _vlans)
        yield from _differ(facts, name, by_node, "mtu_differs", "MTU", _mtu)


def _made(name: str, model: Answer, lack: Sequence[str]) -> Iterator[str]:
    """Yield what makes a bridge on nodes that lack it, as others have it, and applies it."""
    options = [
        "--type bridge",
        *(["--bridge_ports <its port>"] if model.get("bridge_ports") else []),
    ]
    options += ["--bridge_vlan_aware 1"] if int(model.get("bridge_vlan_aware") or 0) else []
    options += [
        f"--{key} {quote(str(model[key]))}" for key in ("bridge_vids", "mtu") if model.get(key)
    ]
    for node in lack:
        yield f"pvesh create /nodes/{node}/network --iface {name} {' '.join(options)}"
        yield _APPLY.format(node)


def _differ(
    facts: Facts,
    name: str,
    by_node: dict[str, Answer],
    code: str,
    what: str,
    value: Callable[[Answer], str],
) -> Iterator[Finding]:
    values = {node: value(one) for node, one in sorted(by_node.items())}
    if len(set(values.values())) < 2:
        return
    each = ", ".join(f"{node}: {text}" for node, text in values.items())
    yield Finding(
        code,
        Level.WARNING,
        f"Cluster {facts.name}",
        f"Bridge {name} has different {what}: {each}.",
        "A server that moves loses its network, or a part of its packets.",
        (f"pvesh get /nodes/{min(values)}/network/{name}",),
    )


def _vlans(one: Answer) -> str:
    if not int(one.get("bridge_vlan_aware") or 0):
        return "not aware"
    return str(one.get("bridge_vids") or "2-4094")


def _mtu(one: Answer) -> str:
    return str(one.get("mtu") or 1500)


def up(facts: Facts) -> Iterator[Finding]:
    """Yield bridges that are configured and not there: changes that nobody applied."""
    for node, one in _networks(facts):
        if one.get("type") in _BRIDGES and not int(one.get("active") or 0):
            yield Finding(
                "bridge_down",
                Level.WARNING,
                f"Node {node}",
                f"Bridge {one['iface']} is configured and not active.",
                "Servers on its network don't start there.",
                (_APPLY.format(node),),
            )


def migration(facts: Facts) -> Iterator[Finding]:
    """Yield a migration network that a node has no address in, or that isn't encrypted."""
    options = _parts(facts.options.get("migration"))
    if options.get("type") == "insecure":
        yield Finding(
            "migration_insecure",
            Level.WARNING,
            f"Cluster {facts.name}",
            "Memory of servers that move crosses the network as plain text.",
            "Who is on that network reads it. It is right only for a network of its own.",
            ("pvesh set /cluster/options --migration type=secure",),
        )
    text = options.get("network")
    if not text:
        return
    network = ipaddress.ip_network(text, strict=False)
    have = {node for node, one in _networks(facts) if _address_in(one, network)}
    lack = [name for name in _readable_nodes(facts) if name not in have]
    if lack:
        yield Finding(
            "migration_network",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The migration network {text} has no address on {', '.join(lack)}.",
            "Migrations from and to there fail.",
            ("pvesh set /cluster/options --delete migration",),
        )


def zones(facts: Facts) -> Iterator[Finding]:
    """Yield vnets that are missing on a node."""
    for node in facts.online:
        for vnet, why in sorted(node.unready.items()):
            yield Finding(
                "vnet_unready",
                Level.WARNING,
                f"Node {node.name}",
                f"The SDN vnet {vnet} isn't there: {why}.",
                "Servers on its network are neither built there nor moved there.",
                ("pvesh set /cluster/sdn",),
            )


def _readable_nodes(facts: Facts) -> list[str]:
    """Return the nodes whose interfaces could be read."""
    nodes = (node.name for node in facts.online if node.name in facts.details)
    return [name for name in nodes if facts.details[name].networks]


def _networks(facts: Facts) -> Iterator[tuple[str, Answer]]:
    ours = {node.name for node in facts.online}
    for node, detail in sorted(facts.details.items()):
        if node in ours:
            for one in detail.networks:
                yield node, one


def _bridges(facts: Facts) -> dict[str, dict[str, Answer]]:
    found: dict[str, dict[str, Answer]] = defaultdict(dict)
    for node, one in _networks(facts):
        if one.get("type") in _BRIDGES:
            found[str(one["iface"])][node] = one
    return found


def _address_in(one: Answer, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    texts = (one.get("cidr"), one.get("cidr6"))
    return any(text and ipaddress.ip_interface(str(text)).ip in network for text in texts)


def _parts(value: object) -> dict[str, str]:
    """Return the parts of an option, which Proxmox VE answers as text or as an object."""
    if isinstance(value, dict):
        return {str(key): str(one) for key, one in value.items()}
    pairs = (part.partition("=") for part in str(value or "").split(",") if part)
    return {key if equals else "type": text if equals else key for key, equals, text in pairs}
