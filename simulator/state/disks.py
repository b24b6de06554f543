"""Work on volumes: allocate, copy, clone and free, under the storage's lock.

Allocations and clones on one storage are serialised; copying data doesn't hold the lock.
"""

from __future__ import annotations

import re

from simulator.engine import Lock, Sleep, Work
from simulator.errors import Interrupted, LockedCommandTimeout, PveError
from simulator.state.cluster import Cluster
from simulator.state.model import MIB, Storage, Volume
from simulator.state.storage_kinds import QCOW2, kind, place_of
from simulator.state.tasks import Job
from simulator.state.volumes import format_of, path_of, say

ALLOCATE_SECONDS = 0.15
CLONE_SECONDS = 0.25
FREE_SECONDS = 0.1
COPY_BYTES_PER_SECOND = 200_000_000
#: how often a copy logs its progress
STEPS = 10
EMPTY_QCOW2 = 200_704
CLOUDINIT_SIZE = 4 * MIB
MAX_IMAGE = 1 << 50

_UNITS = (("T", 40), ("G", 30), ("M", 20), ("K", 10))


def print_size(size: int) -> str:
    """Return a size as configurations show it: in the largest unit that divides it."""
    for unit, shift in _UNITS:
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def parse_size(text: str) -> int:
    """Return the bytes of a size with an optional unit letter."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([KMGT])?", text)
    if match is None:
        raise PveError(f"unable to parse size '{text}'")
    shift = dict(_UNITS).get(match.group(2) or "", 0)
    return int(float(match.group(1)) * (1 << shift))


def human(size: float) -> str:
    """Return a size as transfer log lines show it."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.1f} {unit}"
    return f"{float(size):.1f} B"


def _formatting(path: str, image_format: str, size: int, backing: str = "") -> str:
    if image_format != "qcow2":
        return f"Formatting '{path}', fmt={image_format} size={size} preallocation=off"
    cluster, extended = ("131072", "on") if backing else ("65536", "off")
    base = f"backing_file={backing} backing_fmt=qcow2 " if backing else ""
    return (
        f"Formatting '{path}', fmt=qcow2 cluster_size={cluster} extended_l2={extended} "
        f"preallocation=metadata compression_type=zlib size={size} {base}"
        "lazy_refcounts=off refcount_bits=16"
    )


def allocate(
    cluster: Cluster,
    job: Job | None,
    node: str,
    storage_id: str,
    vmid: int,
    image_format: str,
    size: int,
    name: str = "",
    *,
    exact: bool = False,
) -> Work:
    """Create an empty volume and return it; default name: the next free disk number.

    ``exact``: with any format that the storage allocates; otherwise one of its copies' formats.
    """
    storage = cluster.enabled_storage(storage_id, node)
    lock = yield from cluster.lock_storage(storage_id, node)
    place = cluster.place(storage_id, node)
    one = kind(storage)
    if not exact or image_format not in one.more_formats:
        image_format = one.format(image_format)
    name = name or cluster.volumes.free_name(storage, node, vmid, image_format)
    path = path_of(storage, name)
    if cluster.volumes.get(place, name) is not None:
        raise say(one.texts.taken, storage, name)
    if job is not None and one.files and path.endswith(name):
        job.log(_formatting(path, image_format, size))
    if size >= MAX_IMAGE:
        raise PveError(
            f"unable to create image: qemu-img: {path}: The image size is too large for file "
            f"format '{image_format}'"
        )
    size = one.size(size)
    used = allocated(storage, image_format, size)
    require_room(cluster, storage, node, used, name)
    volume = cluster.add_volume(Volume(*place, name, "images", image_format, size, used, vmid))
    yield from _make(cluster, node, volume, lock, ALLOCATE_SECONDS)
    return volume


def require_format(storage: Storage, image_format: str) -> None:
    """Raise PveError for a format that a storage does not allocate."""
    if not kind(storage).allocates(image_format):
        raise PveError(kind(storage).texts.format.format(format=image_format))


def allocated(storage: Storage, image_format: str, size: int) -> int:
    """Return what an empty volume takes: of a thick one all of it, and qcow2's own tables."""
    one = kind(storage)
    if one.thin:
        return min(size, EMPTY_QCOW2)
    return one.size(size + size // 8192 + MIB) if image_format == QCOW2 else size


def require_room(cluster: Cluster, storage: Storage, node: str, needed: int, name: str) -> None:
    """Raise PveError unless a storage has so many bytes left for a volume of this name."""
    free = storage.capacity - cluster.used(storage, node)
    if needed <= free:
        return
    if not kind(storage).thin:
        unit, group = kind(storage).unit, place_of(storage)
        raise PveError(
            f"lvcreate '{group}/{name}' error:   Volume group \"{group}\" has "
            f"insufficient free space ({free // unit} extents): {needed // unit} required."
        )
    raise say(kind(storage).texts.full, storage, name)


def require_more(
    cluster: Cluster, job: Job, node: str, volume: Volume, text: str, needed: int, **more: str
) -> None:
    """Raise PveError, in a text of ``Texts``, unless a volume's storage has so many bytes left.

    Without a text it needs no room.
    """
    storage = cluster.storage(volume.storage)
    free = storage.capacity - cluster.used(storage, node)
    if not text or needed <= free:
        return
    unit = kind(storage).unit
    counts = {"extents": str(needed // unit), "free": str(free // unit)}
    *lines, last = text.split("\n")
    for line in lines:
        job.log(say(line, storage, volume.name, **counts, **more).text)
    raise say(last, storage, volume.name, **counts, **more)


def _make(cluster: Cluster, node: str, volume: Volume, lock: Lock, seconds: float) -> Work:
    """Take the time of an allocation; remove a failed copy, leave a timed-out one."""
    try:
        yield from cluster.storage_work(volume.storage, node, lock, seconds)
    except LockedCommandTimeout:
        raise
    except PveError:
        if cluster.volumes.get((volume.storage, volume.node), volume.name) is volume:
            cluster.remove_volume(volume)
        raise


def clone_linked(
    cluster: Cluster, job: Job, node: str, base: Volume, vmid: int, snap: str = ""
) -> Work:
    """Create a linked clone of a volume, or of a snapshot of it, and return it."""
    storage = cluster.enabled_storage(base.storage, node)
    lock = yield from cluster.lock_storage(base.storage, node)
    place = (base.storage, base.node)
    one = kind(storage)
    apart = base.format in one.independent
    image_format = base.format if apart else one.format(QCOW2)
    name = cluster.volumes.free_name(storage, node, vmid, image_format)
    own, path = name.rpartition("/")[2], path_of(storage, name)
    if not apart:
        job.log(f"clone {base.name}: images, {own}, {vmid} to {own} (base=../{base.name})")
    if one.files and not apart:
        job.log(_formatting(path, image_format, base.size, f"../{base.name}"))
    require_room(cluster, storage, node, EMPTY_QCOW2, name)
    parent = "" if apart else base.name
    made = Volume(*place, name, "images", image_format, base.size, 528_384, vmid, parent)
    made.data = base.kept.get(snap, base.data)
    volume = cluster.add_volume(made)
    yield from _make(cluster, node, volume, lock, CLONE_SECONDS)
    return volume


def readable(cluster: Cluster, volume: Volume) -> bool:
    """Return whether a node can read the size of a volume.

    A qcow2 volume on LVM is only active while a VM uses it, or after an operation on it; lists
    show the allocated size of inactive volumes.
    """
    one = kind(cluster.storage(volume.storage))
    return one.files or not one.chained or volume.format != QCOW2 or bool(users(cluster, volume))


def users(cluster: Cluster, volume: Volume) -> list[int]:
    """Return the VMs whose QEMU has a volume open."""
    return [
        vm.vmid
        for vm in cluster.vms.values()
        if vm.running and any(one.partition(",")[0] == volume.volid for one in vm.config.values())
    ]


def require_closed(cluster: Cluster, volume: Volume, but: int = 0) -> None:
    """Raise what qemu-img answers for a file that a VM's QEMU has open."""
    storage = cluster.storage(volume.storage)
    if not kind(storage).files or volume.format in kind(storage).independent:
        return
    if any(vmid != but for vmid in users(cluster, volume)):
        path = path_of(storage, volume.name)
        raise PveError(f"qemu-img: Could not open '{path}': Failed to get \"write\" lock")


def copy(
    cluster: Cluster, job: Job, node: str, source: Volume, target: Volume, snap: str = ""
) -> Work:
    """Copy the data of a volume into another; takes time by size, without the storage's lock.

    ``snap``: as it was in that snapshot. What is copied while a VM writes to it is torn.
    """
    if source.content == "images" and not source.base and not snap:
        require_closed(cluster, source, but=source.vmid)
    data = source.kept.get(snap, source.data) if snap else written(cluster, source)
    size = source.virtual_size or source.size
    storage = cluster.storage(target.storage)
    command = (
        f"command '/usr/bin/qemu-img convert -p -n -f {source.format} -O {target.format} "
        f"{path_of(cluster.storage(source.storage), source.name)} "
        f"zeroinit:{path_of(storage, target.name)}' failed"
    )
    steps = STEPS if size > 64 * MIB else 1
    total = human(size)
    job.log(f"transferred 0.0 B of {total} (0.00%)")
    try:
        for step in range(1, steps + 1):
            yield Sleep(size / COPY_BYTES_PER_SECOND / steps)
            done = size * step / steps
            job.log(f"transferred {human(done)} of {total} ({100 * step / steps:.2f}%)")
    except Interrupted as signal:
        raise PveError(f"copy failed: {command}: received interrupt") from signal
    if target.storage not in cluster.storages:
        raise PveError(f"copy failed: {command}: exit code 1")
    grown = max(source.used, target.used) - target.used
    if cluster.used(storage, node) + grown > storage.capacity:
        job.log("qemu-img: error while writing: No space left on device")
        raise PveError(f"copy failed: {command}: exit code 1")
    target.data = data
    resize(cluster, target, used=target.used + grown)


def written(cluster: Cluster, volume: Volume) -> str:
    """Return what a volume has in it; torn, if a VM that isn't its owner writes to it."""
    if volume.content == "import":
        return volume.data or f"image {volume.name.rpartition('/')[2]}"
    foreign = any(vmid != volume.vmid for vmid in users(cluster, volume))
    return f"torn {volume.data}" if foreign else volume.data


def mirrored(name: str, size: int, step: int) -> str:
    """Return what QEMU's mirror of a running VM's disk has done, after so many of ``STEPS``."""
    share, end = step / STEPS, ", ready" if step == STEPS else ""
    done = f"{human(size * share)} of {human(size)} ({100 * share:.2f}%)"
    return f"mirror-{name}: transferred {done} in {step}s{end}"


def resize(cluster: Cluster, volume: Volume, *, size: int = 0, used: int = 0) -> None:
    """Change a volume's size."""
    place = (volume.storage, volume.node)
    if cluster.volumes.get(place, volume.name) is not volume:
        return
    cluster.volumes.remove(volume)
    volume.size = kind(cluster.storage(volume.storage)).size(size) if size else volume.size
    volume.used = used or volume.used
    cluster.add_volume(volume)


def free(cluster: Cluster, node: str, volid: str) -> Work:
    """Remove a volume; return whether it existed. Raises for a base that is still in use."""
    storage_id = volid.partition(":")[0]
    cluster.enabled_storage(storage_id, node)
    lock = yield from cluster.lock_storage(storage_id, node)
    volume = cluster.volume(volid, node)
    if volume is not None:
        if volume.base and cluster.volumes.children(volume):
            raise PveError(f"base volume '{volume.name}' is still in use by linked cloned")
        cluster.remove_volume(volume)
    yield from cluster.storage_work(storage_id, node, lock, FREE_SECONDS)
    return volume is not None


def default_format(name: str) -> str:
    """Return the default format of a copy: that of the source."""
    found = format_of(name)
    return found if found in ("raw", "qcow2", "vmdk") else "raw"
