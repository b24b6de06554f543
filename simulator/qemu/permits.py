"""Permissions to set options, disks and bridges of a virtual machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simulator.errors import PveError, parameter_errors
from simulator.propstring import split
from simulator.qemu.drives import Drive, drives_of
from simulator.request.vmschema import NETWORK, group_of
from simulator.state import sdn
from simulator.state.access import Identity
from simulator.state.cluster import Cluster
from simulator.state.volumes import content_of, owner_of, parse_volid

READ_STORAGE = ("Datastore.Audit", "Datastore.AllocateSpace")
_CLOUDINIT = ("VM.Config.Cloudinit", "VM.Config.Network")


def options(
    cluster: Cluster, who: Identity, vmid: int, pool: str | None, names: Iterable[str]
) -> None:
    """Raise 403, or 500 for root's options, unless every option may be changed."""
    if who.root:
        return
    access = cluster.access
    for name in names:
        if name == "vmstate":
            access.require_vm(who, vmid, pool, "VM.Config.Disk", "VM.PowerMgmt")
            continue
        group = group_of(name)
        if group in ("drive", "serial", "device", "tags"):
            continue
        if group == "root":
            raise PveError(f"only root can set '{name}' config")
        wanted = _CLOUDINIT if group == "VM.Config.Cloudinit" else (group,)
        access.require_vm(who, vmid, pool, *wanted)
        if name == "startup":
            access.require(who, "/", "Sys.Modify")


def devices(
    cluster: Cluster, who: Identity, vmid: int, pool: str | None, params: Mapping[str, str]
) -> None:
    """Check permissions that depend on a value: serial ports, passed-through devices, tags."""
    if who.root:
        return
    for name, value in params.items():
        group = group_of(name)
        if group == "serial":
            if value != "socket":
                raise PveError(f"only root can set '{name}' config for real devices")
            cluster.access.require_vm(who, vmid, pool, "VM.Config.HWType")
        elif group == "device":
            if "mapping=" not in value and value != "spice":
                raise PveError(f"only root can set '{name}' config for real devices")
            cluster.access.require_vm(who, vmid, pool, "VM.Config.HWType")
            mapping = split(value, "host").get("mapping")
            if mapping:
                kind = name.rstrip("0123456789").removeprefix("host")
                cluster.access.require(who, f"/mapping/{kind}/{mapping}", "Mapping.Use")
        elif group == "tags":
            # Privileges on the pool don't count here.
            cluster.access.require(who, f"/vms/{vmid}", "VM.Config.Options")


def drive(cluster: Cluster, who: Identity, vmid: int, pool: str | None, one: Drive) -> None:
    """Raise 403 unless a drive of that kind may be set."""
    if one.cloudinit:
        cluster.access.require_vm(who, vmid, pool, "VM.Config.Cloudinit", "VM.Config.CDROM")
    elif one.cdrom:
        cluster.access.require_vm(who, vmid, pool, "VM.Config.CDROM")
    else:
        cluster.access.require_vm(who, vmid, pool, "VM.Config.Disk")


def storages(cluster: Cluster, who: Identity, vmid: int, params: Mapping[str, str]) -> None:
    """Raise 403, 400 or 500 unless all storages, volumes and import sources may be used."""
    for one in drives_of(params):
        new = one.new
        if one.file in ("none", "cdrom", "") or one.file.endswith(":cloudinit"):
            pass
        elif new is not None and not one.cdrom:
            if new[0] not in cluster.storages:
                cluster.storage(new[0])
            cluster.access.require(who, f"/storage/{new[0]}", "Datastore.AllocateSpace")
            if "images" not in cluster.storage(new[0]).content:
                raise parameter_errors(
                    {"storage": f"storage '{new[0]}' does not support vm images"}
                )
        else:
            volume_access(cluster, who, vmid, one.file)
        source = one.options.get("import-from")
        if source:
            _import_source(cluster, who, vmid, one.name, source)


def _import_source(cluster: Cluster, who: Identity, vmid: int, name: str, source: str) -> None:
    if source.startswith("/"):
        volume_access(cluster, who, vmid, source)
        return
    parsed = parse_volid(source)
    cluster.storage(parsed.storage)
    kind = content_of(parsed.name)
    if kind not in ("images", "import"):
        raise parameter_errors(
            {name: f"{source} has wrong type '{kind}' - needs to be 'images' or 'import'"}
        )
    owner = owner_of(parsed.name)
    if owner:
        cluster.access.require(who, f"/vms/{owner}", "VM.Clone")
    else:
        volume_access(cluster, who, vmid, source)


def volume_access(cluster: Cluster, who: Identity, vmid: int, volid: str) -> None:
    """Raise 403 or 500 unless a volume may be read."""
    if volid.startswith("/"):
        if not who.root:
            raise PveError(
                "Only root can pass arbitrary filesystem paths. "
                "at /usr/share/perl5/PVE/Storage.pm line 651."
            )
        return
    parsed = parse_volid(volid)
    cluster.storage(parsed.storage)
    if owner_of(parsed.name) == vmid and vmid:
        return
    path = f"/storage/{parsed.storage}"
    if content_of(parsed.name) in ("iso", "vztmpl", "import"):
        cluster.access.require(who, path, *READ_STORAGE)
    else:
        cluster.access.require(who, path, "Datastore.Allocate")


def bridges(cluster: Cluster, who: Identity, params: Mapping[str, str]) -> None:
    """Raise 403 unless every NIC's bridge may be used."""
    for name in sorted(params):
        if group_of(name) != NETWORK:
            continue
        net = split(params[name], "model")
        bridge = net.get("bridge")
        if not bridge:
            continue
        path = f"/sdn/zones/{sdn.zone_of(cluster, bridge)}/{bridge}"
        if not cluster.access.has(who, path, "SDN.Use"):
            cluster.access.require(
                who, f"{path}/{net['tag']}" if "tag" in net else path, "SDN.Use"
            )
