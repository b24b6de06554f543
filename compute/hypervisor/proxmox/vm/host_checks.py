"""Checks whether a node can take a server, by the last snapshot. Refusals have their numbers."""

from __future__ import annotations

from common.failures import Verdict
from common.messages.commands import Build, Image
from common.messages.facts import ImageFacts
from common.messages.reports import Category
from common.resources.local_disks import total_mib
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import space
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.observe import images
from compute.hypervisor.proxmox.observe.snapshot import Node, Storage, chosen
from compute.hypervisor.proxmox.vmconfig import guest, storage_types


class ReplacedError(HypervisorError):
    """An image's file isn't the one in the last snapshot."""


def host(shared: Shared, build: Build, node_name: str) -> Storage:
    """Return the root disk's storage. Raises for what the host lacks. ``node_name``: the VM's."""
    node(shared, build)
    found = storage(shared, node_name, build.storage)
    hardware(build)
    if not build.boots_from_volume:
        room(shared, node_name, build, found)
        image_is_there(shared, build)
    if build.config_drive is not None:
        config_drives(shared, node_name)
    return found


def node(shared: Shared, build: Build) -> Node:
    """Return the placed node if it is up and has quorum, privileges and bridges."""
    found = shared.node(build.placed.node)
    snapshot = shared.snapshot
    if not found.online:
        raise HypervisorError(Category.NODE_UNHEALTHY, f"Node {found.name} is offline.")
    if not snapshot.quorate:
        raise HypervisorError(
            Category.NODE_UNHEALTHY,
            f"Cluster {shared.settings.name} has no quorum.",
            verdict=Verdict.OTHER_CLUSTER,
        )
    if snapshot.missing:
        raise HypervisorError(
            Category.AUTHORIZATION,
            f"The token lacks {', '.join(snapshot.missing)}.",
            remedy=snapshot.grant,
        )
    elsewhere = snapshot.vms.get(build.placed.vmid)
    if elsewhere is not None and elsewhere.template:
        raise HypervisorError(
            Category.STORAGE_CONFLICT, f"VMID {build.placed.vmid} is a template's."
        )
    for nic in build.nics:
        if found.detail.bridges and nic.bridge not in found.detail.bridges:
            has = ", ".join(found.detail.bridges)
            why = found.unready.get(nic.bridge)
            raise HypervisorError(
                Category.NETWORK,
                f"Node {found.name} has no vnet {nic.bridge} ({why})."
                if why
                else f"Node {found.name} has no bridge {nic.bridge}; it has {has}.",
            )
    return found


def storage(shared: Shared, node_name: str, asked: str | None) -> Storage:
    """Return the storage for the root disk. Raises configuration if there is none."""
    found = chosen(shared.node(node_name), asked or shared.settings.vm_storage, "images")
    name = asked or shared.settings.vm_storage or "any"
    if found is None or not found.active or "images" not in found.content:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"Node {node_name} has no active storage for disks (content 'images'): {name}.",
        )
    return found


def hardware(build: Build) -> None:
    """Refuse impossible hardware, as the scheduler does unless its filter is disabled."""
    guest.of(build)


def room(shared: Shared, node_name: str, build: Build, found: Storage) -> None:
    """Refuse a disk that doesn't fit: all of it, or what a thin disk takes at first."""
    beside = total_mib(build.local_disks) << 20
    disk = (build.disk_gib << 30) + beside
    first = build.image.size_bytes if build.image is not None and not build.image.cd else 0
    needed = first if storage_types.of(found.kind).thin else max(disk, first + beside)
    space.require(shared, node_name, found, needed)


def image(shared: Shared, build: Build) -> Image:
    """Return the build's image. Raises image_not_found if it names none or the node has none."""
    found = build.image
    if found is None:
        raise HypervisorError(Category.IMAGE_NOT_FOUND, "The build names no image.")
    name = found.volid.split(":", 1)[0]
    place = shared.snapshot.storage(build.placed.node, name)
    if place is None or not place.active:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"Storage {name} of image {found.name} is not available on {build.placed.node}.",
        )
    return found


def image_is_there(shared: Shared, build: Build) -> None:
    """Refuse an image that is in neither the last snapshot nor a new listing of the storage.

    Raises image_not_found, and image_corrupt if the file is no disk image.
    """
    found = image(shared, build)
    if found.template_only:
        return  # the look at its template decides
    known = shared.snapshot.nodes[build.placed.node].images
    if any(one.volid == found.volid for one in known):
        return
    _look(shared, build.placed.node, found)


def image_is_as_listed(shared: Shared, node_name: str, found: Image) -> None:
    """Check an image's file before it is read: present, an image, and as in the snapshot.

    Proxmox VE has no checksums of files: size and time of change must do. Raises image_not_found,
    image_corrupt if it is no disk image, and ReplacedError.
    """
    if found.template_only:
        _look(shared, node_name, found)
        return
    place = found.volid.split(":", 1)[0]
    path = f"nodes/{node_name}/storage/{place}/content"
    content = images.ISO if found.cd else "import"
    listed = images.facts(place, shared.client.get(path, content=content))
    now = next((one for one in listed if one.volid == found.volid), None)
    if now is None or not now.size_bytes:
        _look(shared, node_name, found)
        raise _corrupt(found, "is no disk image")
    for seen_before in shared.node(node_name).images:
        if seen_before.volid == found.volid and _file(seen_before) != _file(now):
            raise ReplacedError(
                Category.IMAGE_CORRUPT,
                f"Image {found.name} ({found.volid}) changed since it was listed: then "
                f"{_file(seen_before)}, now {_file(now)}.",
            )


def relist(shared: Shared, build: Build, node_name: str) -> None:
    """Take over a replaced image's new facts. Raises image_corrupt if it needs a larger disk."""
    found = image(shared, build)
    shared.relist(node_name, found.volid.split(":", 1)[0])
    for now in shared.node(node_name).images:
        size = now.virtual_size_bytes or 0
        if now.volid == found.volid and size > build.disk_gib << 30:
            raise _corrupt(
                found,
                f"was replaced by an image that needs {-(-size >> 30)} GiB; "
                f"the server's disk has {build.disk_gib} GiB",
            )


def fits(found: Image | None, present: int, gib: int) -> None:
    """Refuse the disk that an image became if it is larger than it may be.

    ``present``: its size in bytes; ``gib``: that of the flavor or volume, 0: what the image says
    of itself. Storages round up to units that whole GiB are multiples of. Raises image_corrupt:
    the file has another size for who copies it than for who checked it.
    """
    most = gib or (-(-found.virtual_size_bytes >> 30) if found is not None else 0)
    if found is not None and most and present > most << 30:
        raise _corrupt(found, f"became a disk of {present} bytes, where {most} GiB are the most")


def _file(facts: ImageFacts) -> str:
    """Return what is known of a file, in words."""
    when = f" of {facts.created_at.isoformat()}" if facts.created_at else ""
    return f"{facts.size_bytes} bytes{when}"


def _corrupt(found: Image, why: str) -> HypervisorError:
    return HypervisorError(Category.IMAGE_CORRUPT, f"Image {found.name} ({found.volid}) {why}.")


def _look(shared: Shared, node_name: str, found: Image) -> None:
    """Raise if a file is missing or empty."""
    try:
        answer = shared.client.get(paths.volume(node_name, found.volid))
    except ApiError as error:
        if error.no_volume:
            raise HypervisorError(
                Category.IMAGE_NOT_FOUND, f"Image {found.name} is not there: {found.volid}."
            ) from error
        raise
    if not int(answer.get("size") or 0):
        raise _corrupt(found, "is no disk image")


def config_drives(shared: Shared, node_name: str) -> Storage:
    """Return the storage for config drives. Raises api_not_supported when there is none."""
    found = chosen(shared.node(node_name), shared.settings.iso_storage, "iso")
    if found is None or not found.active or "iso" not in found.content:
        name = shared.settings.iso_storage or "any"
        raise HypervisorError(
            Category.API_NOT_SUPPORTED,
            f"Node {node_name} has no active storage for config drives (content 'iso'): {name}.",
        )
    return found


def all_config_drives(shared: Shared, node_name: str, *, also_inactive: bool = False) -> list[str]:
    """Return every storage where this driver may have put a config drive."""
    configured = shared.settings.iso_storage
    if configured is not None:
        return [configured]
    node = shared.snapshot.nodes.get(node_name)
    storages = node.storages.values() if node is not None else ()
    taking = [one for one in storages if "iso" in one.content]
    return [one.name for one in taking if one.active or also_inactive]
