"""Storages and their content over the API."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

from simulator.engine import Sleep, Work
from simulator.errors import PveError, bad_parameters
from simulator.qemu import archives
from simulator.qemu.permits import READ_STORAGE
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.model import MIB, Storage, Volume
from simulator.state.storage_kinds import kind
from simulator.state.tasks import Job
from simulator.state.volumes import format_of, path_of

DOWNLOAD_SIZE = 512 * MIB
DOWNLOAD_BYTES_PER_SECOND = 100_000_000


def visible(call: Call, storage: Storage) -> bool:
    return call.cluster.access.has(call.who, f"/storage/{storage.id}", *READ_STORAGE)


def status_of(call: Call, storage: Storage, node: str) -> dict[str, Any]:
    """Return capacity and use of a storage as a node sees it."""
    online = not call.cluster.offline(storage.id, node)
    used = call.cluster.used(storage, node) if online else 0
    return {
        "active": int(online),
        "avail": storage.capacity - used if online else 0,
        "content": ",".join(storage.content),
        "enabled": int(not storage.disabled),
        "shared": int(storage.shared),
        "total": storage.capacity if online else 0,
        "type": storage.type,
        "used": used,
    }


def node_storages(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/storage`."""
    wanted = [one for one in call.get("content").split(",") if one]
    shown = []
    for storage in call.cluster.storages.values():
        if not storage.on(call.node) or not visible(call, storage):
            continue
        if call.get("storage") not in ("", storage.id):
            continue
        if call.flag("enabled") and storage.disabled:
            continue
        if wanted and not set(wanted) & set(storage.content):
            continue
        entry = status_of(call, storage, call.node)
        fraction = entry["used"] / entry["total"] if entry["total"] else 0
        entry |= {"storage": storage.id, "used_fraction": fraction}
        if call.flag("format"):
            one = kind(storage)
            formats = {"default": one.formats[0], "supported": sorted(one.formats)}
            entry |= {"formats": formats, "select_existing": 0}
        shown.append(entry)
    return shown


def node_storage(call: Call) -> dict[str, Any]:
    """`GET …/storage/{storage}/status`."""
    storage = call.cluster.storages.get(call.get("storage"))
    if storage is None or not storage.on(call.node):
        raise bad_parameters(storage="No such storage.")
    return status_of(call, storage, call.node)


def node_storage_index(call: Call) -> list[dict[str, str]]:
    """Return the index below one storage of a node."""
    call.cluster.storage(call.get("storage"))
    names = "content download-url file-restore import-metadata prunebackups rrd rrddata status"
    return [{"subdir": name} for name in (*names.split(), "upload")]


_HIDDEN = object()


def _image(call: Call, volume: Volume) -> dict[str, Any]:
    """Return what a list shows of a disk, which depends on its storage's type."""
    storage = call.cluster.storage(volume.storage)
    one, own = kind(storage), volume.name.rpartition("/")[2]
    base = f"../{volume.parent}" if one.files else f"{volume.parent}@__base__"
    shown = {
        "ctime": str(volume.ctime) if one.ctime_text else volume.ctime,
        "name": own,
        "parent": base if volume.parent else None,
        "used": volume.used if one.files else 0,
    }
    known = {key: text if key in one.listed else _HIDDEN for key, text in shown.items()}
    if not disks.readable(call.cluster, volume):
        known |= {"size": _HIDDEN, "approximate-size": volume.used}
    return {**known, "vmid": volume.vmid}


def _entry(call: Call, volume: Volume) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "content": volume.content,
        "ctime": volume.ctime,
        "format": volume.format,
        "size": volume.size,
        "volid": volume.volid,
    }
    if volume.content == "images":
        shown |= _image(call, volume)
        shown = {key: value for key, value in shown.items() if value is not _HIDDEN}
    vmid = archives.owner(volume.name)
    if vmid:
        shown |= {"vmid": vmid, "subtype": "qemu"}
    if volume.notes:
        shown["notes"] = volume.notes
    if volume.protected:
        shown["protected"] = 1
    return shown


def contents(call: Call) -> list[dict[str, Any]]:
    """`GET …/content`; a VMID restricts images and backups only, as on the real server."""
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    place = call.cluster.place(storage.id, call.node)
    wanted, vmid = call.get("content"), call.get("vmid")
    found: list[Volume] = []
    if vmid:
        found += call.cluster.volumes.at(place, int(vmid))
        others = call.cluster.volumes.at(place, 0)
        found += [one for one in others if archives.owner(one.name) in (0, int(vmid))]
    else:
        found += call.cluster.volumes.at(place)
    shown = [_entry(call, one) for one in found if wanted in ("", one.content)]
    return sorted(shown, key=lambda entry: str(entry["volid"]))


_EXTENSIONS = {
    "iso": (r"\.(?:iso|img)$", "wrong file extension"),
    "vztmpl": (r"\.tar\.(?:gz|xz|zst)$", "wrong file extension"),
    "import": (r"^[\w\-.+=]+\.(?:ova|ovf|qcow2|raw|vmdk)$", "invalid filename or wrong extension"),
}


def check_name(call: Call, content: str, name: str) -> None:
    """Raise 400 unless a file of that name may have that content type."""
    if content == "import" and not call.cluster.version.import_upload:
        raise bad_parameters(
            content="value 'import' does not have a value in the enumeration 'iso, vztmpl'"
        )
    expression, complaint = _EXTENSIONS[content]
    if not re.search(expression, name, re.IGNORECASE):
        raise bad_parameters(filename=complaint)
    storage = call.cluster.storage(call.get("storage"))
    if content not in storage.content:
        raise PveError(f"can't upload to storage type '{storage.type}', content '{content}'")


def download(call: Call) -> str:
    """`POST …/download-url`: downloads nothing; the name decides the pretended size."""
    access, node = call.cluster.access, call.node
    everywhere = all(access.has(call.who, "/", one) for one in ("Sys.Audit", "Sys.Modify"))
    if not everywhere and not access.has(call.who, f"/nodes/{node}", "Sys.AccessNetwork"):
        raise PveError("Permission check failed", 403)
    content, name = call.get("content"), call.get("filename")
    check_name(call, content, name)
    storage = call.cluster.enabled_storage(call.get("storage"), node)
    target = path_of(storage, f"{content}/{name}")
    place = call.cluster.place(storage.id, node)
    if call.cluster.volumes.get(place, f"{content}/{name}") is not None:
        raise PveError(f"refusing to override existing file '{target}'")
    return call.start("download", name, lambda job: _download(call, job, storage, target))


def _download(call: Call, job: Job, storage: Storage, target: str) -> Work:
    url, name, content = call.get("url"), call.get("filename"), call.get("content")
    job.log(f"downloading {url} to {target}")
    host = urlsplit(url).hostname or ""
    if host in ("127.0.0.1", "localhost", "::1") or host.endswith(".invalid"):
        raise PveError(
            f"download failed: command 'wget -O {target}.tmp_dwnl {url}' failed: exit code 4"
        )
    yield Sleep(DOWNLOAD_SIZE / DOWNLOAD_BYTES_PER_SECOND)
    node = "" if storage.shared else call.node
    checksum = call.get("checksum") or hashlib.sha256(url.encode()).hexdigest()
    call.cluster.add_volume(
        Volume(
            storage.id,
            node,
            f"{content}/{name}",
            content,
            format_of(name),
            DOWNLOAD_SIZE,
            DOWNLOAD_SIZE,
            virtual_size=2048 * MIB,
            checksum=checksum,
        )
    )
    job.log("finished file import successfully")
