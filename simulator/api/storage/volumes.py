"""Single volumes over the API: allocating, reading, changing and removing them."""

from __future__ import annotations

from typing import Any

from simulator.digits import is_digits
from simulator.engine import Sleep, Work
from simulator.errors import PveError, bad_parameters, no_storage
from simulator.qemu import archives
from simulator.qemu.permits import volume_access
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.model import KIB
from simulator.state.storage_kinds import QCOW2, RAW, VMDK, kind
from simulator.state.tasks import Job
from simulator.state.volumes import content_of, named, owner_of, parse_volid, path_of, say

DELAY_STEP_SECONDS = 0.25
_EXTENSIONS = (RAW, QCOW2, VMDK)


def allocate(call: Call) -> Work:
    """`POST …/content`: allocate an empty image."""
    vmid, name = call.vmid, call.get("filename")
    storage, wanted = call.cluster.storage(call.get("storage")), call.get("format")
    extension = name.rpartition(".")[2]
    if extension in _EXTENSIONS:
        if wanted not in ("", extension):
            text = f"different storage formats ({wanted} != {extension})"
            raise bad_parameters(format=text)
        wanted = extension
    image_format = wanted or kind(storage).formats[0]
    disks.require_format(storage, image_format)
    name = named(storage, vmid, name, image_format)
    size = call.get("size")
    volume = yield from disks.allocate(
        call.cluster,
        None,
        call.node,
        storage.id,
        vmid,
        image_format,
        int(size) * KIB if is_digits(size) else disks.parse_size(size),
        name,
        exact=True,
    )
    return volume.volid


def _may_delete(call: Call, storage: str, backed_up: int) -> None:
    """Raise 403 unless the caller may remove a volume; backups need less."""
    access, path = call.cluster.access, f"/storage/{storage}"
    owner = access.has(call.who, f"/vms/{backed_up}", "VM.Backup")
    if not backed_up or not owner or not access.has(call.who, path, "Datastore.AllocateSpace"):
        access.require(call.who, path, "Datastore.Allocate")


def _volid(call: Call) -> str:
    volume, storage = call.get("volume"), call.get("storage")
    return volume if ":" in volume else f"{storage}:{volume}"


def one_content(call: Call) -> dict[str, Any]:
    """`GET …/content/{volume}`."""
    volid = _volid(call)
    parsed = parse_volid(volid)
    volume_access(call.cluster, call.who, 0, volid)
    call.cluster.enabled_storage(parsed.storage, call.node)
    volume = call.cluster.volume(volid, call.node)
    storage = call.cluster.storage(parsed.storage)
    path = path_of(storage, parsed.name)
    one = kind(storage)
    if volume is None and content_of(parsed.name) != "images":
        raise PveError(f"failed to stat '{path}'")
    if volume is None:
        raise say(one.texts.no_size, storage, parsed.name)
    if not disks.readable(call.cluster, volume):
        raise PveError(f"volume_size_info on '{volid}' failed - no format")
    size = volume.virtual_size or volume.size
    shown: dict[str, Any] = {
        "format": volume.format,
        "path": path,
        "size": size,
        "used": volume.used if one.files else 0,
    }
    if volume.notes:
        shown["notes"] = volume.notes
    if volume.protected:
        shown["protected"] = 1
    return shown


def change(call: Call) -> None:
    """`PUT …/content/{volume}`: notes and protection, which only backups have."""
    volid = _volid(call)
    volume_access(call.cluster, call.who, 0, volid)
    volume = call.cluster.volume(volid, call.node)
    if volume is None or volume.content != "backup":
        if call.get("notes"):
            raise PveError("only backups can have notes")
        raise PveError("only backups support attribute 'protected'")
    if "notes" in call.params:
        volume.notes = call.get("notes")
    if "protected" in call.params:
        volume.protected = call.flag("protected")
    call.cluster.add_volume(volume)


def delete(call: Call) -> Work:
    """`DELETE …/content/{volume}`: an `imgdel` task, even if there is no such volume.

    With `delay` the answer waits that long for the task, and names no task that has ended.
    """
    volid = _volid(call)
    parsed = parse_volid(volid)
    storage = call.cluster.storages.get(parsed.storage)
    if storage is None:
        raise no_storage(parsed.storage)
    owner = owner_of(parsed.name) or archives.owner(parsed.name)
    _may_delete(call, storage.id, archives.owner(parsed.name))
    subject = f"{owner}@{storage.id}" if owner else storage.id

    def body(job: Job) -> Work:
        found = call.cluster.volume(volid, call.node)
        if found is not None and found.protected:
            raise PveError(f"cannot remove protected volume '{parsed.name}' on '{storage.id}'")
        if not (yield from disks.free(call.cluster, call.node, volid)) and kind(storage).files:
            job.log(f"disk image '{path_of(storage, parsed.name)}' does not exist")
        job.log(f"Removed volume '{volid}'")

    upid = call.start("imgdel", subject, body)
    waited = 0.0
    while waited < float(call.get("delay", "0")):
        yield Sleep(DELAY_STEP_SECONDS)
        waited += DELAY_STEP_SECONDS
        task = call.cluster.tasks.tasks[upid]
        if not task.running and task.exitstatus == "OK":
            return None
    return upid
