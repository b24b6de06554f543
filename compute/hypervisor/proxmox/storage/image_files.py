"""Files of uploaded images on a storage. Only those of the cloud's own are touched: by name, which
Proxmox VE gives a file once its hash was found right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from common.messages.commands import RemoveImage, StoreImage
from common.messages.reports import Category
from common.resources import image_files
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.multipart import Multipart
from compute.hypervisor.proxmox.cluster.shared import Shared

#: looks at a file after an answer was lost, seconds between them
SETTLE_SECONDS = (0.2, 1.0, 3.0)


def store(
    shared: Shared, work: Work, command: StoreImage, pieces: Callable[[], Iterator[bytes]]
) -> Detail:
    """Upload the file unless it is there with its size, and see it there.

    The name has the cloud, the image and the hash, which Proxmox VE compares before the file gets
    its name; so one of the same name and size has the same content. One of another size is what
    an upload left that broke off: it is replaced. Raises HypervisorError.
    """
    node, volid = command.placed.node, command.volid
    _require_ours(command)
    found = image_files.parse(volid)
    if found is None or not command.sha512.startswith(found.digest):
        raise _foreign(command)
    detail: Detail = {"volume": volid, "bytes": command.size_bytes}
    if _size(shared, node, volid) == command.size_bytes:
        return {**detail, "found": True}
    try:
        upid = shared.client.upload_pieces(node, _form(command, pieces), volid.partition(":")[0])
        work.report(upid=upid)
        shared.tasks.wait(work, upid)
    except ApiError as error:
        if error.category is not Category.UNKNOWN_OUTCOME or not _came(shared, work, command):
            raise
    size = _size(shared, node, volid)
    if size != command.size_bytes:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"{volid} is listed with {size} bytes instead of {command.size_bytes}.",
        )
    shared.relist(node, volid.partition(":")[0])
    return detail


def remove(shared: Shared, work: Work, command: RemoveImage) -> Removal:
    """Delete the file, and see it gone. Raises HypervisorError."""
    node, volid = command.placed.node, command.volid
    _require_ours(command)
    if _size(shared, node, volid) is None:
        return Removal(True)
    try:
        upid = shared.client.delete(paths.volume(node, volid))
        if upid:
            work.report(upid=str(upid))
            shared.tasks.wait(work, str(upid))
    except ApiError:
        if _size(shared, node, volid) is not None:
            raise
    gone, names = _size(shared, node, volid) is None, (f"volume {volid}",)
    shared.relist(node, volid.partition(":")[0])
    return Removal(gone, names) if gone else Removal(gone, (), names)


def _form(command: StoreImage, pieces: Callable[[], Iterator[bytes]]) -> Multipart:
    content, _, name = command.volid.partition(":")[2].partition("/")
    fields = {
        "content": content,
        "checksum-algorithm": "sha512",
        "checksum": command.sha512,
    }
    return Multipart(fields, name, command.size_bytes, pieces)


def _came(shared: Shared, work: Work, command: StoreImage) -> bool:
    """Return whether the file is there after all, though an answer was lost."""
    for seconds in SETTLE_SECONDS:
        work.pause(seconds)
        if _size(shared, command.placed.node, command.volid) == command.size_bytes:
            return True
    return False


def _size(shared: Shared, node: str, volid: str) -> int | None:
    """Return the listed size of a volume, bytes; None: it isn't listed."""
    storage, _, rest = volid.partition(":")
    path = f"nodes/{node}/storage/{storage}/content"
    for one in shared.client.get(path, content=rest.partition("/")[0]):
        if one.get("volid") == volid:
            return int(one.get("size") or 0)
    return None


def _require_ours(command: StoreImage | RemoveImage) -> None:
    """Raise HypervisorError unless the name says that the file is this cloud's image's."""
    if not image_files.is_of(command.volid, command.cloud, command.resource_id):
        raise _foreign(command)


def _foreign(command: StoreImage | RemoveImage) -> HypervisorError:
    return HypervisorError(
        Category.PROTECTED,
        f"{command.volid} is no file of image {command.resource_id} of this cloud. It was not "
        "touched.",
    )
