"""Nodes, storages and VMs of ``/cluster/resources`` and ``/cluster/status``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import GuestUse, HypervisorError
from compute.hypervisor.proxmox.observe.snapshot import ListedVm, Node, Storage


def nodes(
    resources: Iterable[Mapping[str, Any]], status: Iterable[Mapping[str, Any]]
) -> dict[str, Node]:
    """Return the nodes with their storages. Raises HypervisorError when none is listed."""
    members = {str(one["name"]): one for one in status if one.get("type") == "node"}
    listed = list(resources)
    storages: dict[str, dict[str, Storage]] = {}
    for one in listed:
        if one.get("type") == "storage":
            storages.setdefault(one["node"], {})[one["storage"]] = _storage(one)
    found = {}
    for one in listed:
        if one.get("type") == "node":
            name = str(one["node"])
            found[name] = _node(one, members.get(name, {}), storages.get(name, {}))
    if not found:
        raise HypervisorError(
            Category.AUTHORIZATION, "The token sees no node: Sys.Audit on /nodes."
        )
    return found


def _node(
    one: Mapping[str, Any], member: Mapping[str, Any], storages: Mapping[str, Storage]
) -> Node:
    return Node(
        name=str(one["node"]),
        online=bool(member.get("online", one.get("status") == "online")),
        maintenance=one.get("hastate") == "maintenance",
        ip=str(member.get("ip", "")),
        cpus=int(one.get("maxcpu") or 0),
        load=float(one.get("cpu") or 0.0),
        memory=int(one.get("maxmem") or 0),
        memory_used=int(one.get("mem") or 0),
        uptime=int(one.get("uptime") or 0),
        storages=storages,
    )


def _storage(one: Mapping[str, Any]) -> Storage:
    return Storage(
        name=str(one["storage"]),
        type=str(one.get("plugintype", "")),
        shared=bool(one.get("shared")),
        active=one.get("status") == "available",
        total=int(one.get("maxdisk") or 0),
        used=int(one.get("disk") or 0),
        content=frozenset(str(one.get("content", "")).split(",")),
    )


def vms(listed: Iterable[Mapping[str, Any]]) -> dict[int, ListedVm]:
    """Return VMs, templates and containers by VMID."""
    return {int(one["vmid"]): _vm(one) for one in listed if "vmid" in one}


def _vm(one: Mapping[str, Any]) -> ListedVm:
    return ListedVm(
        vmid=int(one["vmid"]),
        kind=str(one.get("type", "")),
        node=str(one["node"]),
        name=str(one.get("name", "")),
        running=one.get("status") == "running",
        template=bool(one.get("template")),
        status=str(one.get("status", "")),
        lock=str(one.get("lock") or ""),
    )


def guests(listed: Iterable[Mapping[str, Any]]) -> tuple[GuestUse, ...]:
    """Return what VMs use, without templates and containers."""
    return tuple(
        _use(one) for one in listed if one.get("type") == "qemu" and not one.get("template")
    )


def _use(one: Mapping[str, Any]) -> GuestUse:
    vcpus = int(one.get("maxcpu") or 0)
    return GuestUse(
        vmid=int(one["vmid"]),
        running=one.get("status") == "running",
        vcpus=vcpus,
        cpus_used=float(one.get("cpu") or 0.0) * vcpus,
        memory_bytes=int(one.get("maxmem") or 0),
        memory_used_bytes=int(one.get("mem") or 0),
        received_bytes=int(one.get("netin") or 0),
        sent_bytes=int(one.get("netout") or 0),
        read_bytes=int(one.get("diskread") or 0),
        written_bytes=int(one.get("diskwrite") or 0),
        uptime_seconds=int(one.get("uptime") or 0),
    )
