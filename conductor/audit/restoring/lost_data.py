"""Images, snapshots and backups that the record lacks, and that clusters have. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.messages.inventory import ClusterInventory, SeenImageFile, SeenSnapshot, SeenVm
from common.resources.states import ResourceType
from conductor.audit.facts import Facts
from conductor.audit.restoring.items import Item, Known, Verdict, is_proven, of_vm


@dataclass
class LostUpload:
    """The files of an image whose data a user sent: those with the same data."""

    first: SeenImageFile
    locations: dict[str, str] = field(default_factory=dict)
    """Cluster → volume."""


def images(facts: Facts, known: Known) -> Iterator[Item]:
    """Yield the images that files hold."""
    found: dict[str, LostUpload] = {}
    for name, inventory in facts.inventories.items():
        for file in inventory.image_files or ():
            if file.cloud != facts.cloud or file.image_id in known.images:
                continue
            if file.image_id in facts.busy_images:
                continue
            upload = found.setdefault(file.image_id, LostUpload(file))
            if file.digest == upload.first.digest:
                upload.locations.setdefault(name, file.volid)
    for image_id, upload in found.items():
        file = upload.first
        where = f"{file.volid} in cluster {next(iter(upload.locations))}"
        about = (ResourceType.IMAGE, image_id, where)
        if file.project_id:
            text = f"Image {image_id} of project {file.project_id} was uploaded since."
            yield Item(Verdict.ADOPT, *about, text, found=upload)
        else:
            text = "An upload made since. Its name and owner are lost; its data is there."
            yield Item(Verdict.LEAVE, *about, text)


def template(known: Known, inventory: ClusterInventory, vm: SeenVm, image_id: str) -> Item:
    """Return a template: a cached one, or the only copy of a server's, or a volume's, image."""
    whole = vm.proven and vm.template and bool(vm.drives)
    verdict = Verdict.ADOPT if whole else Verdict.LEAVE
    if vm.project_id and image_id not in known.images:
        text = f"Image {image_id} of project {vm.project_id} was made since."
        return of_vm(verdict, ResourceType.IMAGE, image_id, inventory, vm, text)
    text = "A cached template of the image was made since."
    return of_vm(verdict, ResourceType.TEMPLATE, image_id, inventory, vm, text)


def snapshots(facts: Facts) -> Iterator[Item]:
    """Yield the snapshots in the holders of volumes."""
    known = {one.id for one in facts.snapshots}
    for inventory in facts.inventories.values():
        for vm in inventory.vms:
            if vm.volume_id is None or not is_proven(facts.cloud, vm):
                continue
            for one in vm.snapshots or ():
                if one.snapshot_id and one.snapshot_id not in known:
                    yield _snapshot(facts, inventory, vm, one)


def _snapshot(facts: Facts, inventory: ClusterInventory, vm: SeenVm, one: SeenSnapshot) -> Item:
    about = (ResourceType.SNAPSHOT, str(one.snapshot_id), inventory, vm)
    if vm.volume_id in facts.busy_volumes:
        text = "An operation works on its volume: run it again later."
        return of_vm(Verdict.LEAVE, *about, text)
    if not one.whole:
        return of_vm(Verdict.LEAVE, *about, "It was not taken to its end.")
    text = f"Snapshot {one.name} of volume {vm.volume_id} was taken since."
    return of_vm(Verdict.ADOPT, *about, text, one)


def backups(facts: Facts) -> Iterator[Item]:
    """Yield the backups whose archives storages have."""
    known = {one.id for one in facts.backups} | facts.busy_backups
    seen: set[str] = set()
    for inventory in facts.inventories.values():
        for saved in inventory.backups or ():
            if saved.cloud != facts.cloud or saved.backup_id in known | seen:
                continue
            seen.add(saved.backup_id)
            where = f"{saved.volid} in cluster {inventory.cluster}"
            about = (ResourceType.BACKUP, saved.backup_id, where)
            if saved.project_id and saved.volume_id and saved.size_gib:
                text = f"A backup of volume {saved.volume_id} that was made since."
                yield Item(Verdict.ADOPT, *about, text, inventory.cluster, found=saved)
            else:
                text = "A backup whose notes name no owner. Its archive is left."
                yield Item(Verdict.LEAVE, *about, text, inventory.cluster)
