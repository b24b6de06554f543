"""Archives of virtual machines: their names, their content, and reading them."""

from __future__ import annotations

import re
import time

from simulator.errors import PveError
from simulator.qemu.drives import Drive
from simulator.request.call import Call
from simulator.state.model import ConfigMap, Storage, Vm, Volume
from simulator.state.volumes import content_of, parse_volid, path_of

_NAME = re.compile(r"^backup/vzdump-qemu-([0-9]+)-[0-9_]+-[0-9_]+\.(vma(?:\.\w+)?)$")
_NOT_SAVED = frozenset({"lock", "parent", "vmstate", "digest", "description"})
_NOT_RESTORED = re.compile(r"unused[0-9]+")
_MAP = "#qmdump#map:"


def archive_name(vmid: int, stamp: time.struct_time, suffix: str) -> str:
    """Return the name of an archive on its storage."""
    return f"backup/vzdump-qemu-{vmid}-{time.strftime('%Y_%m_%d-%H_%M_%S', stamp)}.vma{suffix}"


def path_of_archive(storage: Storage, name: str) -> str:
    """Return the path of an archive's file."""
    return path_of(storage, name)


def owner(name: str) -> int:
    """Return the VMID of an archive's VM, or 0."""
    match = _NAME.match(name)
    return int(match.group(1)) if match else 0


def has_room(call: Call, storage: Storage, used: int) -> bool:
    """Return whether a storage has room for an archive of so many bytes."""
    return call.cluster.used(storage, call.node) + max(used, 1 << 10) <= storage.capacity


def keep(
    call: Call, vm: Vm, storage: Storage, name: str, drives: list[Drive], used: int
) -> Volume:
    """Store an archive of a VM, with its configuration, on a storage."""
    cluster = call.cluster
    size = max(used, 1 << 10)
    match = _NAME.match(name)
    kind = match.group(2) if match else "vma"
    place = cluster.place(storage.id, call.node)
    # No VMID: removing a VM removes all volumes with its VMID, and archives outlive it.
    volume = Volume(*place, name, "backup", kind, size, size)
    for drive in drives:
        saved_from = cluster.volume(drive.file, call.node)
        volume.kept[drive.name] = "" if saved_from is None else saved_from.data
    cluster.add_volume(volume)
    cluster.keep_data(volume, _text(vm, drives).encode())
    return volume


def _text(vm: Vm, drives: list[Drive]) -> str:
    said = vm.config.get("description", "")
    lines = [f"#{line}" for line in said.split("\n")] if said else []
    lines += [f"{key}: {vm.config[key]}" for key in sorted(vm.config) if key not in _NOT_SAVED]
    for drive in drives:
        kind = parse_volid(drive.file).name.rpartition(".")[2]
        lines.append(f"{_MAP}{drive.name}:drive-{drive.name}:{drive.storage}:{kind}:")
    return "\n".join(lines) + "\n"


def archive(call: Call, volid: str) -> Volume:
    """Return the archive of a volume id that the caller may read. Raises 500 for anything else."""
    cluster, parsed = call.cluster, parse_volid(volid)
    cluster.enabled_storage(parsed.storage, call.node)
    path = f"/storage/{parsed.storage}"
    cluster.access.require(call.who, path, "Datastore.AllocateSpace", "Datastore.Allocate")
    kind = content_of(parsed.name)
    if kind != "backup":
        raise PveError(f"unable to use volume {volid} - content type needs to be 'backup'")
    volume = cluster.volume(volid, call.node)
    if volume is None:
        raise PveError(f"volume '{volid}' does not exist")
    return volume


def saved_text(call: Call, volume: Volume) -> str:
    """Return the configuration in an archive, with the lines that name its disks."""
    data = call.cluster.data.get(f"{volume.storage}/{volume.node}/{volume.name}", b"")
    return data.decode()


def saved(call: Call, volume: Volume) -> tuple[ConfigMap, set[str]]:
    """Return the configuration in an archive, and the names of the disks in it."""
    config: ConfigMap = {}
    names: set[str] = set()
    said: list[str] = []
    for line in saved_text(call, volume).splitlines():
        if line.startswith(_MAP):
            names.add(line.removeprefix(_MAP).partition(":")[0])
        elif line.startswith("#"):
            said.append(line[1:])
        else:
            key, _, text = line.partition(": ")
            if not _NOT_RESTORED.fullmatch(key):
                config[key] = text
    if said:
        config["description"] = "\n".join(said)
    return config, names
