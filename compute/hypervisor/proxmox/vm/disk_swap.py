"""The disks of a VM: implements ``port.Disks`` with Proxmox VE's calls.

A rescued VM boots from a disk of its own slot, and has all its own disks where they were.

A new root disk is imported on the storage of the old one, and the local disks beside it are made
again there, empty; a root disk that is a volume is named instead, and those beside it stay.
Firmware and TPM stay; the options that the new image decides otherwise change with the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.failures import Verdict
from common.messages.commands import Image, ServerVolume, Swap
from common.messages.reports import Category
from compute.hypervisor.only_look import may_only_look
from compute.hypervisor.port import Detail, HypervisorError, Removal
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vm import (
    attachment,
    config_drive,
    host_checks,
    noted_swap,
    saved,
)
from compute.hypervisor.proxmox.vmconfig import (
    disks,
    guest,
    hardware,
    power_states,
    swaps,
    volumes,
)


class VmDisks:
    """The disks of one VM, for one operation."""

    def __init__(self, vm: Vm) -> None:
        self._vm, self._shared = vm, vm.shared

    def check(self, swap: Swap) -> Detail:
        """Refuse an image that isn't there or doesn't fit; a replaced one is listed again."""
        host_checks.node(self._shared, swap)
        if swap.config_drive is not None:
            host_checks.config_drives(self._shared, self._vm.node)
        config = self._vm.look() or {}
        if swap.root is not None:
            return self._check_root(config, swap.root, swap.cloud)
        storage = self._storage(config)
        image = host_checks.image(self._shared, swap)
        self._require_free(config, swap, image)
        host_checks.room(self._vm.shared, self._vm.node, swap, storage)
        try:
            host_checks.image_is_as_listed(self._shared, self._vm.node, image)
        except host_checks.ReplacedError as replaced:
            self._vm.work.report(listed_anew=replaced.message)
            host_checks.relist(self._shared, swap, self._vm.node)
        return {"image": image.name, "storage": storage.name}

    def _check_root(self, config: Config, root: ServerVolume, cloud: str) -> Detail:
        """Refuse a volume that is neither named already nor at rest in its holder."""
        if swaps.volume(swaps.root(config)) != root.volid:
            holder = root.holder
            attachment.require_parked(self._vm, root.volume_id, root.volid, holder, cloud)
        return {"volume": root.volid}

    def swapped(self, swap: Swap) -> bool:
        """Return whether the VM has the new root disk and all other changes of the swap."""
        if noted_swap.is_swapped(self._vm, swap.operation_id, self._wanted(swap)):
            return True
        # If the swap may be repeated, an earlier operation's number proves nothing: after an older
        # database is restored, numbers are used again.
        return may_only_look() and noted_swap.has_ended(self._vm, swap.operation_id)

    def has_former(self, *, rescued: bool = False) -> bool:
        """Return whether the note of it is there."""
        operation_id = None if rescued else self._vm.work.command.operation_id
        return noted_swap.has_former(self._vm, operation_id)

    def upload(self, swap: Swap, image: Callable[[], bytes]) -> Detail:
        """Upload the ISO under the name that the one in use doesn't have."""
        self._make_ready(swap)
        iso = image()
        retained = noted_swap.drive_before(self._vm)
        volid = config_drive.upload(self._vm, swap.resource_id, iso, retained)
        return {"volume": volid, "bytes": len(iso)}

    def swap(self, swap: Swap) -> Detail:
        """Make another root disk of the image; the old one becomes unused. Or beside it.

        An image that is a CD is inserted, beside a blank disk.
        """
        if may_only_look() and noted_swap.has_ended(self._vm, swap.operation_id):
            return {"swapped": True}
        self._make_ready(swap)
        if swap.root is not None:
            return self._name_root(swap, swap.root)
        image = host_checks.image(self._shared, swap)
        storage = noted_swap.root_storage(self._vm, self._vm.look() or {})
        noted_swap.swap(self._vm, swap.operation_id, self._wanted(swap), storage, image.volid)
        config = self._vm.look() or {}
        slot = disks.rescue_slot(image) if swap.rescue else disks.root_slot(config)
        made = str(config.get(slot, ""))
        host_checks.fits(image, disks.size_bytes(made), 0 if swap.rescue else swap.disk_gib)
        return {"image": image.name, "volume": swaps.volume(made)}

    def _name_root(self, swap: Swap, root: ServerVolume) -> Detail:
        """Name the volume as root disk: the former volume remains in its own holder."""
        storage = root.volid.partition(":")[0]
        wanted = self._wanted(swap)
        noted_swap.swap(self._vm, swap.operation_id, wanted, storage, root.volid)
        return {"volume": root.volid}

    def give_back(self, *, rescued: bool = False) -> Removal:
        """Give it back what it had, and remove what is new."""
        self._discard_memory()
        command = self._vm.work.command
        operation_id = None if rescued else command.operation_id
        return noted_swap.give_back(self._vm, command.resource_id, operation_id)

    def let_go(self) -> Removal:
        """Remove what it had before."""
        command = self._vm.work.command
        return noted_swap.let_go(self._vm, command.resource_id, command.operation_id)

    def _wanted(self, swap: Swap) -> Callable[[Config], Mapping[str, str | None]]:
        """Return what gives the options for a configuration: {option: value; None: not set}."""
        specs, has = swap.extra_specs, (swap.vcpus, swap.memory_mib)
        new = guest.of_size(*has, specs, swap.image_properties)
        old = guest.of_size(*has, specs, swap.former_properties)
        drive = self._drive(swap) if swap.config_drive is not None else None

        def wanted(config: Config) -> Mapping[str, str | None]:
            if swap.rescue:
                values = self._rescue_disk(config, swap)
            else:
                cpu_type = self._shared.settings.cpu_type
                values = swaps.hardware(config, new, old, swap.vcpus, cpu_type)
                values["name"] = hardware.vm_name(swap)
                values |= self._root_disk(config, swap)
            if drive is not None:
                values[disks.CONFIG_DRIVE] = disks.cd(drive)
            return values

        return wanted

    def _rescue_disk(self, config: Config, swap: Swap) -> dict[str, str | None]:
        image = host_checks.image(self._shared, swap)
        slot = disks.rescue_slot(image)
        inserted = disks.cd(image.volid) if image.cd else None
        value = inserted or self._made(config, swap, image)
        return {slot: value, disks.BOOT: f"order={slot}"}

    def _root_disk(self, config: Config, swap: Swap) -> dict[str, str | None]:
        root = swap.root
        if root is not None:
            value = volumes.reference(root.volid, root.serial, readonly=root.readonly)
            return _instead({disks.ROOT_DISK: value}, config)
        image = host_checks.image(self._shared, swap)
        inserted = disks.cd(image.volid) if image.cd else None
        has = guest.of(swap)
        slot, limits = disks.root_slot_of(has), guest.disk_limits(has)
        made = disks.bounded(self._made(config, swap, image), limits)
        values = _instead({slot: made}, config)
        storage = self._storage(config)
        for one in swap.local_disks:
            made = disks.local(one, storage.name, storage.kind, limits)
            values[disks.local_slot(one)] = made
        cd, had = disks.install_cd(slot), disks.install_cd(disks.root_slot(config))
        has_cd = had in config and not swaps.is_disk_there(config, had)
        if has_cd and had != cd:
            values[had] = None
        if inserted or has_cd:
            values[cd] = inserted
        # Proxmox VE takes a disk that is removed out of the order.
        if inserted or has_cd or slot != disks.root_slot(config) or not disks.root(config):
            values[disks.BOOT] = disks.boot_order(image, slot)
        return values

    def _made(self, config: Config, swap: Swap, image: Image) -> str:
        storage = self._storage(config)
        return disks.made_of(image, storage.name, storage.kind, swap.disk_gib)

    def _require_free(self, config: Config, swap: Swap, image: Image) -> None:
        """Raise HypervisorError if a CD is to be inserted where the VM has a disk."""
        slot = disks.install_cd(disks.root_slot_of(guest.of(swap)))
        if swap.rescue:
            slot = disks.rescue_slot(image)
        if image.cd and swaps.is_disk_there(config, slot):
            raise HypervisorError(
                Category.API_NOT_SUPPORTED,
                f"{self._vm} has a disk {slot}, where image {image.name} would be inserted.",
                verdict=Verdict.FATAL,
            )

    def _drive(self, swap: Swap) -> str:
        return config_drive.volid(self._vm, swap.resource_id, noted_swap.drive_before(self._vm))

    def _storage(self, config: Config) -> Storage:
        name = noted_swap.root_storage(self._vm, config)
        found = self._shared.snapshot.storage(self._vm.node, name)
        if found is None or not found.active:
            raise HypervisorError(
                Category.CONFIGURATION,
                f"Storage {name} of the root disk is not active on {self._vm.node}.",
                verdict=Verdict.WAIT,
            )
        return found

    def _make_ready(self, swap: Swap) -> None:
        self._discard_memory()
        noted_swap.end_others(self._vm, swap.operation_id)

    def _discard_memory(self) -> None:
        """Let a suspended VM, which can't be changed, be a stopped one."""
        if (self._vm.look() or {}).get("lock") == power_states.SUSPENDED:
            saved.discard(self._vm)


def _instead(root: dict[str, str], config: Config) -> dict[str, str | None]:
    """Return the options of a new root disk, which replaces one on another bus, too."""
    former = disks.root_slot(config)
    gone: dict[str, str | None] = {} if former in root or former not in config else {former: None}
    return {**gone, **root}
