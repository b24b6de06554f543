"""A close look at one VM: what an adoption, or the search for a lost VM, must know.

Nothing is changed. Absence needs two sources: the cluster's list and the VM's own node.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from common.messages.facts import Inspection, NicFacts
from common.messages.reports import Category
from common.resources.states import PowerState
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import saved_state
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.vmconfig import disks, hardware, marks, power_states
from compute.hypervisor.proxmox.vmconfig.marks import Owner

Config = Mapping[str, Any]

_DISK = re.compile(r"(?:scsi|virtio|ide|sata)[0-9]+")
NIC = re.compile(r"net([0-9]+)")
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", re.IGNORECASE)


def inspect(shared: Shared, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
    """See ``port.Hypervisor.inspect``. Two calls if it is on ``node``, else one long one more.

    The cluster's list, long with many VMs, is only read if the node hasn't got it.
    """
    problem: ApiError | None = None
    if node is not None:
        try:
            return _on(shared, vmid, node, server_uuid)
        except ApiError as error:
            if not error.no_config and error.category is not Category.NODE_UNHEALTHY:
                raise
            problem = error
    listed = shared.listed(vmid)
    if listed is None:
        if problem is not None and not problem.no_config:
            # Its node doesn't answer: the VM may still exist.
            raise problem
        return Inspection(vmid, node=node or "")
    if listed.kind != "qemu":
        return Inspection(vmid, exists=True, node=listed.node, kind="container")
    try:
        return _on(shared, vmid, listed.node, server_uuid)
    except ApiError as error:
        if not error.no_config:
            raise
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"The cluster lists VM {vmid} on {listed.node}, and {listed.node} has no such VM.",
        ) from error


def _on(shared: Shared, vmid: int, node: str, server_uuid: str | None) -> Inspection:
    path = f"nodes/{node}/qemu/{vmid}"
    config = shared.client.get(f"{path}/config")
    status = shared.client.get(f"{path}/status/current")
    found = inspected(vmid, node, config, power_states.current(status), server_uuid)
    return replace(
        found,
        unsuspendable=saved_state.refusal(shared, node, config, status),
        unstarted=found.power_state == PowerState.SHUTDOWN
        and is_unstarted(shared, vmid, node, config),
    )


def is_unstarted(shared: Shared, vmid: int, node: str, config: Config) -> bool:
    """Return whether its build left it unstarted, and nobody has started it since by the tasks."""
    return marks.is_unstarted(config) and not shared.tasks.of_vm(node, vmid, "qmstart")


def inspected(
    vmid: int, node: str, config: Config, power_state: PowerState, server_uuid: str | None
) -> Inspection:
    """Return what a configuration says. Pure."""
    mark = marks.server_mark(server_uuid, "") if server_uuid is not None else None
    return Inspection(
        vmid,
        exists=True,
        node=node,
        kind="template" if str(config.get("template", "0")) == "1" else "vm",
        ours=mark is not None and marks.owner(config, mark) is Owner.OURS,
        marked_by=marks.named(config),
        cloud=marks.cloud_of(config),
        name=str(config.get("name", "")),
        lock=str(config["lock"]) if "lock" in config else None,
        power_state=power_state,
        vcpus=int(config.get("sockets", 1)) * int(config.get("cores", 1)),
        memory_mib=hardware.memory_mib(config),
        disk_gib=_disk_gib(config),
        smbios_uuid=marks.smbios_uuid(config),
        nics=tuple(nics(config)),
    )


def _disk_gib(config: Config) -> int:
    total = sum(
        disks.size_bytes(str(value))
        for key, value in config.items()
        if _DISK.fullmatch(key) and "media=cdrom" not in str(value)
    )
    return -(-total // (1 << 30))


def nics(config: Config) -> Iterator[NicFacts]:
    """Yield the interfaces that a configuration names, by number."""
    ports = marks.ports_of(config)
    found = [(int(match[1]), key) for key in config if (match := NIC.fullmatch(key))]
    for number, key in sorted(found):
        values = dict(part.partition("=")[::2] for part in str(config[key]).split(","))
        mac = next((value for value in values.values() if _MAC.fullmatch(value)), None)
        bridge = values.get("bridge")
        if mac is None or not bridge:
            continue
        vlan = int(values["tag"]) if values.get("tag") else None
        port = ports.get(mac.lower())
        of_port = () if port is None else (one.ip for one in port.addresses)
        ips = dict.fromkeys((*fixed_ips(config.get(f"ipconfig{number}")), *of_port))
        yield NicFacts(mac.lower(), bridge, vlan, tuple(ips), port)


def fixed_ips(text: Any) -> Iterator[str]:
    """Yield the addresses in an ``ipconfigN``, or in the interface of a container; no DHCP."""
    values = dict(part.partition("=")[::2] for part in str(text or "").split(","))
    for name in ("ip", "ip6"):
        address = _address(values.get(name, ""))
        if address is not None:
            yield address


def _address(text: str) -> str | None:
    """Return an address without its prefix; None for another word, such as ``dhcp``."""
    try:
        return str(ipaddress.ip_interface(text).ip)
    except ValueError:
        return None
