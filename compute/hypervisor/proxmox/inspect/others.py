"""The interfaces of VMs and containers that the record doesn't know, with their addresses.

No list of Proxmox VE shows them. Only the VMs that the conductor asks for are read, once and then
rarely.
One call each, and for filtered interfaces without a port's line those of its IP sets.
"""

from __future__ import annotations

import concurrent.futures
import http
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from common.messages.facts import NicFacts, OtherVm
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.inspect.inspection import NIC, fixed_ips, nics
from compute.hypervisor.proxmox.vmconfig import marks

#: reads that run at the same time
READERS = 6
#: what an IP set is called that limits the addresses of an interface (pve-firewall)
_FILTER = "ipfilter-"


def look(client: Client, wanted: Iterable[OtherVm]) -> list[OtherVm]:
    """Return them with their interfaces; without, what is gone or hidden from the token, or could
    not be read now."""
    with concurrent.futures.ThreadPoolExecutor(READERS, "compute-others") as readers:
        return list(readers.map(lambda one: _read(client, one), wanted))


def _read(client: Client, one: OtherVm) -> OtherVm:
    kind = "lxc" if one.kind == "container" else "qemu"
    path = f"nodes/{one.node}/{kind}/{one.vmid}"
    try:
        config = client.get(f"{path}/config")
        found = containers(config) if kind == "lxc" else _of_vm(client, path, config)
        mark = None if kind == "lxc" else marks.owner_mark(config)
        return replace(one, nics=tuple(found), mark=mark)
    except ApiError as error:
        hidden = error.no_config or error.status == http.HTTPStatus.FORBIDDEN
        return one if hidden else replace(one, unread=True)


def containers(config: Mapping[str, Any]) -> Iterator[NicFacts]:
    """Yield the interfaces of a container's configuration. Pure."""
    for key, text in sorted(config.items()):
        if not NIC.fullmatch(key):
            continue
        values = dict(part.partition("=")[::2] for part in str(text).split(","))
        mac, bridge, tag = values.get("hwaddr"), values.get("bridge"), values.get("tag")
        if mac and bridge:
            yield NicFacts(mac.lower(), bridge, int(tag) if tag else None, tuple(fixed_ips(text)))


def _of_vm(client: Client, path: str, config: Mapping[str, Any]) -> Iterator[NicFacts]:
    known = marks.ports_of(config)
    sets = _filtered(client, path, config)
    for nic in nics(config):
        key = next(one for one in sorted(config) if NIC.fullmatch(one) and _has(config[one], nic))
        let_out: Iterable[Mapping[str, Any]] = ()
        if nic.mac not in known and f"{_FILTER}{key}" in sets:
            let_out = client.get(f"{path}/firewall/ipset/{_FILTER}{key}")
        yield replace(nic, ips=tuple(dict.fromkeys((*nic.ips, *_single(let_out)))))


def _has(text: Any, nic: NicFacts) -> bool:
    return f"={nic.mac}," in f"{text},".lower()


def _filtered(client: Client, path: str, config: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the VM's IP sets, where one of its interfaces is filtered."""
    known = marks.ports_of(config)
    due = [nic.mac for nic in nics(config) if nic.mac not in known]
    texts = [str(text) for key, text in config.items() if NIC.fullmatch(key)]
    if not due or not any("firewall=1" in text for text in texts):
        return frozenset()
    return frozenset(str(one["name"]) for one in client.get(f"{path}/firewall/ipset"))


def _single(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the entries of an IP set that are one address, and aren't excluded."""
    for one in entries:
        try:
            network = ipaddress.ip_network(str(one.get("cidr", "")), strict=False)
        except ValueError:
            continue  # an alias
        if network.num_addresses == 1 and not one.get("nomatch"):
            yield str(network.network_address)
