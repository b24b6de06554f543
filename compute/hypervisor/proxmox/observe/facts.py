"""From a snapshot to the facts of hosts, of the cluster and of VMs. Pure."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator

import os_traits
from oslo_config import cfg

from common import clock, ids
from common.messages.facts import ClusterFacts, HostFacts, ImageFacts, StorageFacts, VmFacts
from common.resources.states import PowerState
from compute.hypervisor.port import Observation
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.observe.snapshot import Node, NodeDetail, Snapshot, Storage, chosen
from compute.hypervisor.proxmox.settings import ClusterSettings
from compute.hypervisor.proxmox.vmconfig import hardware, power_states, storage_types
from compute.hypervisor.proxmox.vmconfig.disks import links

#: uploads of disk images into storages with content ``import``, and disks made from them
IMPORTS_SINCE = (8, 4)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")
_WHOLE_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")

#: what Proxmox VE gives guests of every x86-64 node since 7.1, older than any supported version
_TRAITS = (
    os_traits.COMPUTE_FIRMWARE_UEFI,
    os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT,
    os_traits.COMPUTE_SECURITY_TPM_1_2,
    os_traits.COMPUTE_SECURITY_TPM_2_0,
    os_traits.COMPUTE_SECURITY_TPM_TIS,
    os_traits.COMPUTE_VIOMMU_MODEL_INTEL,
    os_traits.COMPUTE_VIOMMU_MODEL_VIRTIO,
    os_traits.COMPUTE_NET_VIF_MODEL_E1000E,
    os_traits.COMPUTE_NET_VIF_MODEL_VMXNET3,
    os_traits.COMPUTE_GRAPHICS_MODEL_CIRRUS,
    os_traits.COMPUTE_GRAPHICS_MODEL_QXL,
    os_traits.COMPUTE_GRAPHICS_MODEL_VIRTIO,
)


def observation(
    conf: cfg.ConfigOpts, settings: ClusterSettings, snapshot: Snapshot
) -> Observation:
    """Return everything that one snapshot shows."""
    now = clock.utcnow()
    running = Counter(vm.node for vm in snapshot.vms.values() if vm.running)
    cached: dict[str, set[str]] = {}
    for vm in snapshot.vms.values():
        image = hardware.image_of_template(vm.name) if vm.template else None
        if image is not None and settings.in_band(vm.vmid):
            cached.setdefault(vm.node, set()).add(image)
    hosts = tuple(
        _host(conf, settings, snapshot, node, now, running[name], cached.get(name, set()))
        for name, node in sorted(snapshot.nodes.items())
        if not settings.hosts or name in settings.hosts
    )
    online = tuple(sorted(node.name for node in snapshot.nodes.values() if node.online))
    whole = snapshot.quorate and not snapshot.missing and len(online) == len(snapshot.nodes)
    # Without the token's privileges nobody knows what it doesn't see.
    whole = whole and privileges.PERMISSIONS not in snapshot.unread
    well = snapshot.quorate and not snapshot.missing
    return Observation(
        _cluster(settings, snapshot),
        hosts,
        _vms(settings, snapshot),
        online,
        whole,
        locked=frozenset(vm.vmid for vm in snapshot.vms.values() if vm.lock),
        usable=tuple(name for name in online if well and name not in snapshot.silent),
        guests=snapshot.guests,
    )


def _host(
    conf: cfg.ConfigOpts,
    settings: ClusterSettings,
    snapshot: Snapshot,
    node: Node,
    now: datetime.datetime,
    running: int,
    cached: set[str],
) -> HostFacts:
    # Its interval is longer than others', since it is a single record.
    options = conf.compute
    disk = chosen(node, settings.vm_storage, "images")
    health = _health(settings, snapshot, node, disk)
    detail = node.detail
    return HostFacts(
        host=settings.host(node.name),
        cluster=settings.name,
        node=node.name,
        uuid=ids.named("host", f"{settings.name}/{node.name}"),
        worker=options.worker,
        availability_zone=settings.availability_zone or options.availability_zone,
        observed_at=now,
        online=node.online,
        healthy=health is None,
        health=health or _note(snapshot, node) or "ok",
        hypervisor_type="QEMU",
        hypervisor_version=plain(detail.version or snapshot.version),
        host_ip=node.ip,
        architecture=detail.architecture,
        cpu_model=detail.cpu_model,
        cpu_vendor=detail.cpu_vendor,
        cpu_sockets=detail.cpu_sockets,
        cpu_cores=detail.cpu_cores,
        cpu_flags=detail.cpu_flags,
        vcpus=node.cpus,
        memory_mib=node.memory >> 20,
        disk_gib=disk.total >> 30 if disk else 0,
        memory_used_mib=node.memory_used >> 20,
        disk_used_gib=disk.used >> 30 if disk else 0,
        cpu_load=round(min(1.0, max(0.0, node.load)), 3),
        uptime_seconds=node.uptime,
        cpu_allocation_ratio=options.cpu_allocation_ratio,
        ram_allocation_ratio=options.ram_allocation_ratio,
        disk_allocation_ratio=options.disk_allocation_ratio,
        reserved_vcpus=options.reserved_vcpus,
        reserved_memory_mib=options.reserved_memory_mib,
        reserved_disk_gib=options.reserved_disk_gib,
        running_vms=running,
        vm_storage=disk.name if disk else "",
        storages=tuple(_storage(one) for _, one in sorted(node.storages.items())),
        bridges=detail.bridges,
        bridge_vlans=detail.bridge_vlans,
        unready_bridges=node.unready,
        zones=node.zones,
        ha_rules=tuple(rule.at(node.name) for rule in snapshot.rules),
        images=tuple(sorted({image.id for image in node.images})),
        cached_images=tuple(sorted(cached)),
        pinned=_pinned(settings, node),
        machine_version=detail.machine_version,
        devices=snapshot.devices.get(node.name, {}),
        traits=_traits(detail, disk),
        capabilities=capabilities(settings, node, disk),
        web_url=f"{settings.web_url}/#v1:0:=node%2F{node.name}" if settings.web_url else "",
    )


def _pinned(settings: ClusterSettings, node: Node) -> dict[str, str]:
    """Return pins of this cloud's band: those of deleted ids elsewhere mean nothing."""
    band = range(settings.vmid_low, settings.vmid_high + 1)
    return {str(vmid): why for vmid, why in node.pinned.items() if vmid in band}


def capabilities(settings: ClusterSettings, node: Node, disk: Storage | None) -> dict[str, bool]:
    """Return the ways to a disk that the node offers."""
    iso = chosen(node, settings.iso_storage, "iso")
    importing = imports(node.detail.version) and any(
        "import" in one.content and one.active for one in node.storages.values()
    )
    linked = disk is not None and links(settings.linked_clones, shared=disk.shared)
    return {
        "linked_clone": disk is not None and storage_types.of(disk.kind).linked and linked,
        "full_clone": disk is not None,
        "import_from": disk is not None and importing,
        "upload": iso is not None and iso.active,
        "snapshots": disk is not None and storage_types.of(disk.kind).snaps_vms,
    }


def _traits(detail: NodeDetail, disk: Storage | None) -> tuple[str, ...]:
    """Return the traits of guests there, and of the storage for their root disks."""
    found = list(_TRAITS if detail.architecture == "x86_64" else ())
    if disk is not None:
        found.append(f"CUSTOM_STORAGE_{disk.type.upper()}")
        found.append("CUSTOM_STORAGE_SHARED" if disk.shared else "CUSTOM_STORAGE_LOCAL")
        if storage_types.of(disk.kind).snaps_vms:
            found.append("CUSTOM_STORAGE_SNAPSHOTS")
    return tuple(found)


def plain(version: str) -> str:
    """Return ``9.2.11`` of ``pve-manager/9.2.11/14a22df35955d97d``; other texts unchanged."""
    found = _WHOLE_VERSION.search(version)
    return found[0] if found else version


def imports(version: str) -> bool:
    """Return whether a node of this version takes disks from import volumes; default: yes."""
    found = _VERSION.search(version)
    return found is None or (int(found[1]), int(found[2])) >= IMPORTS_SINCE


def _health(
    settings: ClusterSettings, snapshot: Snapshot, node: Node, disk: Storage | None
) -> str | None:
    """Return why the node can't be used, or None."""
    return next(_troubles(settings, snapshot, node, disk), None)


def _note(snapshot: Snapshot, node: Node) -> str | None:
    """Return what can't be read of a node that can be used, or None."""
    found = sorted(snapshot.unread_of(node.name).items())
    if not found:
        return None
    path, one = found[0]
    more = f" (nor {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{path} can't be read{more}: {one.why}. What was read before counts."


def _troubles(
    settings: ClusterSettings, snapshot: Snapshot, node: Node, disk: Storage | None
) -> Iterator[str]:
    if not node.online:
        yield "The node is offline."
    if node.maintenance:
        yield "The node is in maintenance (ha-manager)."
    if not snapshot.quorate:
        yield "The cluster has no quorum."
    if snapshot.missing:
        yield f"The token lacks privileges: {'; '.join(snapshot.missing)}."
    if disk is None:
        yield f"No storage for disks: {settings.vm_storage or 'none has content images'}."
    elif not disk.active:
        yield f"The storage {disk.name} is not active."
    elif "images" not in disk.content:
        yield f"The storage {disk.name} takes no disks (content 'images')."


def _storage(one: Storage) -> StorageFacts:
    return StorageFacts(
        one.name,
        one.type,
        one.shared,
        one.active,
        one.total >> 30,
        one.available >> 30,
        tuple(sorted(one.content)),
    )


def _cluster(settings: ClusterSettings, snapshot: Snapshot) -> ClusterFacts:
    by_volume: dict[str, ImageFacts] = {}
    for _, node in sorted(snapshot.nodes.items()):
        for image in node.images:
            by_volume.setdefault(image.volid, image)
    return ClusterFacts(
        settings.name,
        snapshot.version,
        snapshot.quorate,
        tuple(by_volume[volid] for volid in sorted(by_volume)),
        settings.vmid_low,
        settings.vmid_high,
        snapshot.vnets,
        snapshot.unfiltered,
    )


def _vms(settings: ClusterSettings, snapshot: Snapshot) -> tuple[VmFacts, ...]:
    """Return every VM; the conductor knows by the VMID whose it is.

    Templates only if they have an id that could be assigned otherwise.
    """
    found = []
    for vm in snapshot.vms.values():
        if vm.kind == "qemu" and not vm.template:
            found.append(VmFacts(vm.vmid, vm.node, power_states.listed(vm.status, vm.lock)))
        elif vm.kind == "lxc" and not vm.template:
            found.append(VmFacts(vm.vmid, vm.node, PowerState.NOSTATE, kind="container"))
        elif settings.in_band(vm.vmid):
            kind = "template" if vm.kind == "qemu" else "container"
            found.append(VmFacts(vm.vmid, vm.node, PowerState.NOSTATE, kind=kind))
    return tuple(found)
