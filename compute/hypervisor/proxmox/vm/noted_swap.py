"""Swaps disks and options of one stopped VM: it gets new ones; the old ones remain beside them
until they are given back or removed.

Proxmox VE retains a replaced disk as ``unusedN``. The VM's former disks and options are first
noted in its description, so each function here may run again after a crash, on any agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.only_look import may_only_look
from compute.hypervisor.port import HypervisorError, Removal
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.vm import config_drive, host_checks
from compute.hypervisor.proxmox.vmconfig import disks, marks, swaps
from compute.hypervisor.proxmox.vmconfig.swaps import Note

Wanted = Mapping[str, str | None]


def root_storage(vm: Vm, config: Config) -> str:
    """Return the storage of the root disk; where somebody removed that, the one for new disks.

    Raises HypervisorError if its root disk isn't where ours are, or there is no such storage.
    """
    root = swaps.volume(disks.root(config))
    if ":" in root:
        return root.partition(":")[0]
    if not disks.lacks_root(config, adopted=marks.is_adopted(config)):
        raise HypervisorError(
            Category.API_NOT_SUPPORTED,
            f"{vm} has no disk {disks.root_slot(config)}, which would be replaced.",
            verdict=Verdict.FATAL,
        )
    return host_checks.storage(vm.shared, vm.node, None).name


def noted(vm: Vm, operation_id: int) -> Note | None:
    """Return the operation's note from the VM's description, or None."""
    found = swaps.note_of(vm.look() or {})
    return found if found is not None and found.operation_id == operation_id else None


def drive_before(vm: Vm) -> str:
    """Return the volume of the config drive that must not be touched; empty: there is none."""
    config = vm.look() or {}
    found = swaps.note_of(config)
    if found is not None:
        return found.config_drive
    return swaps.volume(str(config.get(disks.CONFIG_DRIVE, "")))


def end_others(vm: Vm, operation_id: int) -> None:
    """End a swap that another operation left open: the VM retains its present root disk, and is
    no longer rescued. Raises HypervisorError if that fails."""
    found = swaps.note_of(vm.look() or {})
    if found is None or found.operation_id == operation_id:
        return
    server = vm.work.command.resource_id
    ended = give_back(vm, server) if found.rescues else let_go(vm, server, found.operation_id)
    if not ended.gone:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"{vm} still has what an earlier operation left: {', '.join(ended.left)}.",
            left=ended.left,
        )


def is_swapped(vm: Vm, operation_id: int, wanted: Callable[[Config], Wanted]) -> bool:
    """Return whether the VM has all that the operation gives it."""
    config = vm.look() or {}
    found = swaps.note_of(config)
    if found is None or found.operation_id != operation_id:
        return False
    return not swaps.missing(config, found, wanted(config))


def has_ended(vm: Vm, operation_id: int) -> bool:
    """Return whether the operation's swap is complete, with the former disks removed."""
    return swaps.ended(vm.look() or {}) == operation_id


def has_former(vm: Vm, operation_id: int | None) -> bool:
    """Return whether it has another disk than before the operation's swap; None: is rescued."""
    config = vm.look() or {}
    found = _own(config, operation_id) is not None
    return found or (operation_id is None and swaps.rescued_from(config) is not None)


def swap(
    vm: Vm, operation_id: int, wanted: Callable[[Config], Wanted], storage: str, source: str
) -> None:
    """Give the VM what ``wanted`` returns for its configuration, and verify it.

    ``source`` is what a disk is made from, on this storage.
    """
    found = noted(vm, operation_id) or _write_note(vm, operation_id, wanted)

    def lacks() -> dict[str, str]:
        config = vm.look() or {}
        return swaps.missing(config, found, wanted(config))

    def call() -> Any:
        config = vm.fence()
        values = swaps.missing(config, found, wanted(config))
        return vm.shared.client.post(f"{vm.path}/config", digest=config["digest"], **values)

    key = vm.shared.storage_key(vm.node, storage)
    with vm.shared.storage_queue.slot(vm.work, key, f"swap {source}"):
        vm.converge(lambda: not lacks(), call)
    _require(vm, not lacks(), "what it was given")


def give_back(vm: Vm, server_uuid: str, operation_id: int | None = None) -> Removal:
    """Give the VM back what it had before the operation's swap, and remove what it was given.

    None: what it had before its rescue, by any operation. A VM without that note has its former
    disks already: only a config drive that nothing names is removed. Where nothing may be removed,
    the VM's configuration decides: a note or a drive left beside it is removed by the next swap,
    or with the VM.
    """
    config = vm.look() or {}
    found = _own(config, operation_id)
    if may_only_look() and operation_id is not None:
        if _has_what_it_had(config, operation_id):
            return Removal(True)
        if found is None:
            return Removal(False, left=("the disk of an operation that has ended",))
    cleaned: list[str] = []
    if found is None and operation_id is None:
        _require_not_rescued(vm, config)
    if found is not None:
        noted_before = found

        def restore() -> Any:
            now = vm.fence()
            values = swaps.given_back(now, noted_before)
            return vm.shared.client.post(f"{vm.path}/config", digest=now["digest"], **values)

        vm.converge(lambda: not swaps.given_back(vm.look() or {}, noted_before), restore)
        _require(vm, not swaps.given_back(vm.look() or {}, found), "what it had before")
        cleaned += _free(vm, swaps.made_since(vm.look() or {}, found))
    return _end(vm, server_uuid, cleaned, found)


def _has_what_it_had(config: Config, operation_id: int) -> bool:
    found = _own(config, operation_id)
    if found is None:
        # Not after it, or a later one, had ended.
        return (swaps.ended(config) or 0) < operation_id
    return not swaps.given_back(config, found) and not swaps.made_since(config, found)


def _own(config: Config, operation_id: int | None) -> Note | None:
    """Return the note that is the operation's, or (None) a rescue's."""
    found = swaps.note_of(config)
    if found is None:
        return None
    own = found.rescues if operation_id is None else found.operation_id == operation_id
    return found if own else None


def _require_not_rescued(vm: Vm, config: Config) -> None:
    """Raise HypervisorError if it runs from a rescue's disk: somebody removed the note."""
    slot = swaps.rescued_from(config)
    if slot is None:
        return
    raise HypervisorError(
        Category.CONFIGURATION,
        f"{vm} boots from {slot}, and its description doesn't say from what before.",
        remedy=f"as root on {vm.node}: qm set {vm.vmid} --boot order={disks.root_slot(config)} "
        f"--delete {slot}",
        verdict=Verdict.FATAL,
    )


def let_go(vm: Vm, server_uuid: str, operation_id: int) -> Removal:
    """Remove what the VM had before the operation's swap; what it was given remains."""
    found = _own(vm.look() or {}, operation_id)
    cleaned = _free(vm, found.replaced) if found is not None else []
    return _end(vm, server_uuid, cleaned, found, swaps.with_end)


def _end(
    vm: Vm,
    server_uuid: str,
    cleaned: list[str],
    ended: Note | None,
    described: Callable[[Config], str] = swaps.without_note,
) -> Removal:
    """Remove the config drive that isn't used, and at last the note; another's note is left.

    ``described``: the description without the note.
    """
    config = vm.look() or {}
    keep = {swaps.volume(str(config.get(disks.CONFIG_DRIVE, "")))}
    there = swaps.note_of(config)
    if there is not None and there != ended:
        keep.add(there.config_drive)
    drive = config_drive.remove(vm, server_uuid, keep)
    if not drive.gone:
        return Removal(False, (*cleaned, *drive.cleaned), drive.left)
    if ended is not None:
        _set_description(vm, lambda one: swaps.note_of(one) is None, described)
    return Removal(True, (*cleaned, *drive.cleaned))


def _write_note(vm: Vm, operation_id: int, wanted: Callable[[Config], Wanted]) -> Note:
    """Note what the VM has."""

    def has(config: Config) -> bool:
        found = swaps.note_of(config)
        return found is not None and found.operation_id == operation_id

    def described(config: Config) -> str:
        names = {**wanted(config), disks.BOOT: None}
        return swaps.with_note(config, swaps.note(operation_id, config, names))

    _set_description(vm, has, described)
    found = noted(vm, operation_id)
    if found is None:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"{vm} has no note of its disks after it was written."
        )
    return found


def _set_description(
    vm: Vm, done: Callable[[Config], bool], described: Callable[[Config], str]
) -> None:
    def call() -> Any:
        config = vm.fence()
        return vm.shared.client.post(
            f"{vm.path}/config", digest=config["digest"], description=described(config)
        )

    vm.converge(lambda: done(vm.look() or {}), call)


def _free(vm: Vm, volumes: frozenset[str]) -> list[str]:
    """Delete the unused disks with these volumes, and see them gone; return them in words.

    A disk that a snapshot names remains with the VM as unused: a rollback may need it.
    """
    kept: set[str] = set()

    now = vm.look() or {}
    # If somebody removed a file and the new disk got its name, Proxmox VE retains both entries.
    used = {disks.file_of(volid) for _, volid in disks.drives(now)}
    volumes = frozenset(one for one in volumes if disks.file_of(one) not in used)

    def left() -> list[str]:
        return swaps.surplus(vm.look() or {}, volumes - kept)

    def call() -> Any:
        config = vm.fence()
        names = ",".join(swaps.surplus(config, volumes - kept))
        return vm.shared.client.post(f"{vm.path}/config", digest=config["digest"], delete=names)

    def free() -> str | None:
        """Return the disk for which that was refused; None: all are gone."""
        try:
            vm.converge(lambda: not left(), call)
        except ApiError as error:
            if error.in_use not in volumes - kept:
                raise
            return error.in_use
        return None

    if not left():
        return []
    storage = sorted(volumes)[0].partition(":")[0]
    with vm.shared.storage_queue.slot(vm.work, vm.shared.storage_key(vm.node, storage), "free"):
        while (disk := free()) is not None:
            kept.add(disk)
            vm.work.report(left=f"{disk}: a snapshot of {vm} names it")
    return [f"volume {one}" for one in sorted(volumes - kept)]


def _require(vm: Vm, holds: bool, what: str) -> None:
    if not holds:
        raise HypervisorError(Category.UNKNOWN_OUTCOME, f"{vm} doesn't have {what}.")
