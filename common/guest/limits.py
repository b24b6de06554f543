"""What flavors and images may ask of Nova and can't have here: a table.

Whatever is asked for and not given would be dropped silently; so it is refused, with these words.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.guest.asked import Asked, CannotError

_NO = frozenset({"", "false", "no", "off", "0", "f", "n"})

_PIN = "guests can't be bound to processors, as nobody but root on a node may do so"
_PAGES = "guests can't have huge pages, as nobody but root on a node may give them"
_ENCRYPT = "guests' memory can't be encrypted, as nobody but root on a node may do so"
_NO_DEVICE = "there is no such device to be had"
_FIXED = "guests have another one, always"


@dataclass(frozen=True)
class _Limit:
    spec: str
    image_property: str
    harmless: frozenset[str]
    """Values that ask for nothing more than what guests have anyway."""
    why: str


def _limit(name: str, why: str, *harmless: str, no: bool = False) -> _Limit:
    """By the name after ``hw:`` in flavors and ``hw_`` in images."""
    return _Limit(
        f"hw:{name}", f"hw_{name}", frozenset({"", *harmless}) | (_NO if no else {""}), why
    )


_LIMITS = (
    _limit("cpu_policy", _PIN, "shared"),
    _limit("cpu_thread_policy", _PIN, "prefer"),
    _limit("cpu_dedicated_mask", _PIN),
    _limit("emulator_threads_policy", _PIN),
    _limit("cpu_realtime", _PIN, no=True),
    _limit("cpu_realtime_mask", _PIN),
    _limit("pci_numa_affinity_policy", _PIN, "legacy", "preferred"),
    _limit("mem_page_size", _PAGES, "small", "any"),
    _limit("locked_memory", "guests' memory can't be locked", no=True),
    _limit("mem_encryption", _ENCRYPT, no=True),
    _limit("mem_encryption_model", _ENCRYPT),
    _limit("pmem", "there is no persistent memory to be had"),
    _limit("pmu", "it is as the processor type of the cluster has it"),
    _limit("boot_menu", "guests have no boot menu", no=True),
    _limit("virtio_packed_ring", "it can't be switched on", no=True),
    _limit("ephemeral_encryption", "disks can't be encrypted", no=True),
    _limit("ephemeral_encryption_format", "disks can't be encrypted"),
    _limit("firmware_stateless", "the firmware's variables are on a disk of their own", no=True),
    _limit("tpm_model", _FIXED, "tpm-tis"),
    _limit("tpm_secret_security", "the TPM's state lies on the storage as the disks do"),
    _limit("sound_model", _NO_DEVICE),
    _limit("usb_model", _NO_DEVICE),
    _limit("input_bus", _NO_DEVICE, "usb"),
    _limit("redirected_usb_ports", _NO_DEVICE, "0"),
    _limit("rng_model", _NO_DEVICE),
    _limit("disk_bus", "root disks are on virtio-scsi", "scsi"),
    _limit("scsi_model", "root disks are on virtio-scsi", "virtio-scsi"),
    _limit("cdrom_bus", "config drives are on ide", "ide"),
    _limit("video_ram", "it can't be chosen", "0"),
    _limit("emulation_architecture", "guests have their host's architecture"),
    _limit("maxphysaddr_mode", "it can't be chosen", "emulate"),
    _limit("maxphysaddr_bits", "it can't be chosen"),
    _Limit("hw_rng:allowed", "", _NO, _NO_DEVICE),
    _Limit("hw_video:ram_max_mb", "", frozenset({"", "0"}), "it can't be chosen"),
)
_QUOTA = "quota:"


def check(asked: Asked) -> None:
    """Raise CannotError for the first thing that can't be had."""
    for limit in _LIMITS:
        text = asked.agreed(limit.spec, limit.image_property)
        if text not in limit.harmless:
            name = limit.spec if asked.extra_specs.get(limit.spec) else limit.image_property
            raise CannotError(f"{name}={text}: {limit.why}")
    for key in asked.extra_specs:
        if key.startswith(_QUOTA):
            raise CannotError(f"{key}: what a guest uses can't be throttled")
