"""Compares VMs with the record: the owner of each, and whether it should exist. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from common.messages.inventory import SeenVm
from common.resources.states import VmState
from conductor.audit.came_back import came_back
from conductor.audit.facts import Facts, Finding, ServerFacts
from conductor.audit.holders import description_line, places

_NOBODY: frozenset[str] = frozenset()
_HALF_MADE = frozenset({"create", "clone"})


def vms(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong about each VM that may be ours."""
    templates = {(one.cluster, one.vmid): one.image_id for one in facts.templates}
    held = places(facts)
    owners = {server.place: server for server in facts.servers.values() if server.place}
    for cluster, inventory in facts.inventories.items():
        for vm in inventory.vms:
            place = (cluster, vm.vmid)
            if place in held or (vm.volume_id is not None and vm.cloud == facts.cloud):
                continue  # see ``holders``
            owner = owners.get(place)
            known = owner is not None or place in templates
            if _in_flux(facts, cluster, vm, owner) or (
                not known and _another_clouds(facts, cluster, vm)
            ):
                continue
            found = _vm(facts, cluster, vm, owner, templates.get(place))
            if found is not None:
                yield found
            elif vm.lock is not None and vm.read and not _is_suspended(vm, owner):
                yield _finding("lock_stuck", cluster, vm, f"It carries the lock '{vm.lock}'.")


def _is_suspended(vm: SeenVm, owner: ServerFacts | None) -> bool:
    """Return whether its lock belongs to a suspended server."""
    # A server that was shelved while it was suspended retains its saved memory.
    may = {VmState.SUSPENDED, VmState.SHELVED, VmState.SHELVED_OFFLOADED}
    return vm.lock == "suspended" and owner is not None and owner.vm_state in may


def _another_clouds(facts: Facts, cluster: str, vm: SeenVm) -> bool:
    """Return whether it is in the band of another cloud, and its mark names no server of ours."""
    if _in_band(facts, cluster, vm) or vm.cloud == facts.cloud:
        return False
    return vm.cloud is not None or (vm.server_uuid or "") not in {"", *facts.servers}


def _in_band(facts: Facts, cluster: str, vm: SeenVm) -> bool:
    low, high = facts.bands.get(cluster, (vm.vmid, vm.vmid))
    return low <= vm.vmid <= high


def _in_flux(facts: Facts, cluster: str, vm: SeenVm, owner: ServerFacts | None) -> bool:
    """Return whether an operation, or a task of any user, may work on this VM."""
    reserved = facts.reservations.get((cluster, vm.vmid))
    named = {vm.server_uuid, owner.uuid if owner else None}
    named.add(reserved.server_uuid if reserved else None)
    return bool(named & facts.busy) or vm.lock_live


def _vm(
    facts: Facts, cluster: str, vm: SeenVm, owner: ServerFacts | None, template: str | None
) -> Finding | None:
    if not vm.read:
        return _unread(cluster, vm)
    if vm.lock in _HALF_MADE and not vm.server_uuid and not vm.image_id:
        return _half_made(facts, cluster, vm)
    if owner is not None:
        return _owned(facts, cluster, vm, owner)
    if vm.image_id is not None:
        return _template(facts, cluster, vm, recorded=template)
    if template is not None:
        return _unmarked(facts, cluster, vm, template)
    return _unexplained(facts, cluster, vm)


def _unexplained(facts: Facts, cluster: str, vm: SeenVm) -> Finding | None:
    """Return a VM that the record has nowhere, by what its marks name."""
    if vm.volume_id is not None and vm.cloud is not None:
        text = f"It holds volume {vm.volume_id} of cloud {vm.cloud}"
        return _of_another_cloud(facts, cluster, vm, text)
    lost = vm.server_uuid is not None and vm.server_uuid not in facts.servers
    if lost and facts.cloud and vm.cloud == facts.cloud:
        return _without_record(cluster, vm)
    strange = vm.server_uuid is None or not vm.proven
    return (_foreign if strange else _unrecorded)(facts, cluster, vm)


def _foreign(facts: Facts, cluster: str, vm: SeenVm) -> Finding | None:
    """Return a finding for a VM that isn't ours, unless it was unmanaged and so is known."""
    had = facts.journal.get((cluster, vm.vmid), _NOBODY)
    if vm.server_uuid is None and had & facts.released:
        return None
    return _finding("vm_foreign", cluster, vm, f"It is not ours: {_described(vm)}.")


def _unread(cluster: str, vm: SeenVm) -> Finding | None:
    """Return a finding for an unread VM that lists contradict; else its node is unseen."""
    if vm.kind == "qemu":
        return None
    return _finding("vm_foreign", cluster, vm, f"A container has the VMID: {vm.name}.")


def _owned(facts: Facts, cluster: str, vm: SeenVm, owner: ServerFacts) -> Finding | None:
    """Return a VM with a server's VMID whose marks don't agree, by what they still name."""
    names_it = vm.server_uuid == owner.uuid
    if vm.proven and names_it and not _names_another_cloud(facts, vm):
        return None
    journalled = owner.uuid in facts.journal.get((cluster, vm.vmid), ())
    is_it = vm.smbios_uuid == owner.uuid.lower() or (names_it and vm.proven)
    if journalled and is_it and not vm.template:
        text = f"Its SMBIOS UUID is the server's, but {_names(vm, owner)}: its mark was edited."
        return _finding("mark_lost", cluster, vm, text, server=owner.uuid)
    if names_it:
        text = f"Its description names the server, its SMBIOS UUID is {vm.smbios_uuid or 'none'}."
        return _finding("smbios_edited", cluster, vm, text, server=owner.uuid)
    text = f"The VM at the server's VMID is not the server's: {_described(vm)}."
    return _finding("vm_replaced", cluster, vm, text, server=owner.uuid)


def _names_another_cloud(facts: Facts, vm: SeenVm) -> bool:
    """Return whether its description names another cloud, or none."""
    return bool(facts.cloud) and vm.cloud != facts.cloud


def _names(vm: SeenVm, owner: ServerFacts) -> str:
    """Return what its description names instead."""
    if vm.server_uuid == owner.uuid:
        return f"its description names {_cloud(vm)}"
    if vm.server_uuid:
        return f"its description names server {vm.server_uuid}"
    return "its description names no server"


def _unmarked(facts: Facts, cluster: str, vm: SeenVm, image_id: str) -> Finding:
    """Return a VM with the VMID of a template of ours, but without its mark."""
    text = f"By the record it is the template of image {image_id}, but {_described(vm)}."
    found = _finding("template_unmarked", cluster, vm, text)
    lines = (f"micronova: template={image_id}", f"micronova: cloud={facts.cloud}")
    marks = description_line(vm.vmid, lines)
    return replace(found, evidence={**found.evidence, "marks": marks})


def _unrecorded(facts: Facts, cluster: str, vm: SeenVm) -> Finding:
    """Return a VM with all the marks of a server that has no VM here."""
    uuid = str(vm.server_uuid)
    server = facts.servers.get(uuid)
    if server is None or (facts.cloud and vm.cloud not in (None, facts.cloud)):
        return _unknown(facts, cluster, vm)
    journalled = uuid in facts.journal.get((cluster, vm.vmid), ())
    journalled = journalled and not _names_another_cloud(facts, vm)
    if server.deleted_at is not None:
        asked = uuid in facts.deleted_on_request
        text = f"Server {uuid} was deleted at {server.deleted_at:%Y-%m-%d %H:%M:%S} UTC."
        restored = came_back(facts, (cluster, vm.vmid), server)
        if restored:
            text += " Its VM was seen gone then, and is there again: it was restored."
        found = _finding(
            "vm_of_deleted_server", cluster, vm, text, proven=journalled and asked, server=uuid
        )
        return replace(found, evidence={**found.evidence, "came_back": restored})
    place = f"VM {server.vmid} in {server.cluster}" if server.place else "no VM"
    text = f"Server {uuid} has {place} by the record."
    safe = server.place is None or _is_there(facts, server)
    return _finding("vm_not_recorded", cluster, vm, text, proven=journalled and safe, server=uuid)


def _without_record(cluster: str, vm: SeenVm) -> Finding:
    """Return a VM of this cloud whose server the record doesn't have, as after a restore."""
    text = f"It is server {vm.server_uuid} of this cloud, which the record doesn't have: the "
    text += "record is older than the VM, or was changed by hand."
    if not vm.proven:
        text += " Its SMBIOS UUID is another one: it may be a copy of the server's VM."
    return _finding("vm_record_lost", cluster, vm, text)


def _unknown(facts: Facts, cluster: str, vm: SeenVm) -> Finding:
    """Return a VM whose marks name a server that the record doesn't have: its cloud decides."""
    text = f"Its marks name server {vm.server_uuid}"
    if vm.cloud is not None:
        return _of_another_cloud(facts, cluster, vm, f"{text} of cloud {vm.cloud}")
    text += ", which the record doesn't have, and no cloud."
    return _finding("vm_without_server", cluster, vm, text, proven=False)


def _of_another_cloud(facts: Facts, cluster: str, vm: SeenVm, text: str) -> Finding:
    """Return a VM with the mark of another cloud."""
    if cluster not in facts.bands:
        return _finding("vm_foreign", cluster, vm, f"{text}.")
    low, high = facts.bands[cluster]
    text += f", in the band {low} to {high} that is ours."
    return _finding("band_shared", cluster, vm, text)


def _is_there(facts: Facts, server: ServerFacts) -> bool:
    """Return whether the server's own VM is seen at its place: else this may be the only one."""
    inventory = facts.inventories.get(str(server.cluster))
    return inventory is not None and any(one.vmid == server.vmid for one in inventory.vms)


def _half_made(facts: Facts, cluster: str, vm: SeenVm) -> Finding:
    journal = sorted(facts.journal.get((cluster, vm.vmid), ()))
    maker = f"made by our task {vm.maker}" if vm.maker else "no task of ours is on record"
    text = f"A VM that was never finished carries the lock '{vm.lock}'; {maker}."
    found = _finding("vm_half_made", cluster, vm, text, server=journal[-1] if journal else None)
    return replace(found, evidence={**found.evidence, "disks": _unnamed_disks(facts, cluster, vm)})


def _unnamed_disks(facts: Facts, cluster: str, vm: SeenVm) -> list[str]:
    """Return our disks that a half-made VM doesn't name: `qm destroy` leaves them."""
    named = {one.volid for one in vm.drives or ()}
    return sorted(
        one.volid
        for one in facts.inventories[cluster].volumes
        if one.vmid == vm.vmid and one.ours and one.node == vm.node and one.volid not in named
    )


def _template(facts: Facts, cluster: str, vm: SeenVm, *, recorded: str | None) -> Finding | None:
    """Return a finding for a template that the record doesn't have."""
    if recorded == vm.image_id:
        return None
    if vm.cloud not in (None, facts.cloud):
        return _of_another_cloud(facts, cluster, vm, f"It is a template of cloud {vm.cloud}")
    building = any(one.action == "create" for one in facts.operations)
    ours = vm.cloud == facts.cloud and (cluster, vm.vmid) in facts.template_places
    text = f"A template of image {vm.image_id} that no record names."
    return _finding(
        "template_without_record",
        cluster,
        vm,
        text,
        proven=ours and recorded is None and not building,
    )


def _cloud(vm: SeenVm) -> str:
    return "no cloud" if vm.cloud is None else f"cloud {vm.cloud}"


def _described(vm: SeenVm) -> str:
    if vm.proven:
        return f"its marks name server {vm.server_uuid}"
    if vm.server_uuid:
        return f"its description names server {vm.server_uuid}, its SMBIOS UUID another one"
    return f"'{vm.name}' has no mark of ours" if vm.name else "it has no mark of ours"


def _finding(
    kind: str,
    cluster: str,
    vm: SeenVm,
    cause: str,
    *,
    proven: bool = True,
    server: str | None = None,
) -> Finding:
    evidence = {
        "name": vm.name,
        "status": vm.status,
        "lock": vm.lock,
        "maker": vm.maker,
        "description_names": vm.server_uuid or vm.image_id,
        "cloud": vm.cloud,
        "project": vm.project_id,
        "user": vm.user_id,
        "smbios_uuid": vm.smbios_uuid,
        "marks_agree": vm.proven,
    }
    subject = f"{cluster}/{vm.vmid}"
    owner = server or vm.server_uuid
    return Finding(kind, subject, cause, proven, owner, cluster, vm.node, vm.vmid, evidence)
