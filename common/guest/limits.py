"""Settings of flavors and images that Nova knows and that are impossible here: a table.

To ignore them would be silent; so they are refused, with these words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from common.guest import throttle
from common.guest.asked import Asked, CannotError

_NO = frozenset({"", "false", "no", "off", "0", "f", "n"})

_VM = frozenset({"", "hvm"})

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
    """Values that ask for nothing but the default."""
    why: str


def _limit(name: str, why: str, *harmless: str, no: bool = False) -> _Limit:
    """Return an entry by the name after ``hw:`` in flavors and ``hw_`` in images."""
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
    _limit("pmem", "there is no persistent memory"),
    _limit("pmu", "the processor type of the cluster decides it"),
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
    _limit("scsi_model", "disks on scsi are on virtio-scsi", "virtio-scsi"),
    # What the guest finds by its label: a preference, as no guest has drivers for one of these.
    _limit("cdrom_bus", "config drives are on ide", "ide", "sata", "scsi"),
    _limit("emulation_architecture", "guests have their host's architecture"),
    _limit("maxphysaddr_mode", "it can't be chosen", "emulate"),
    _limit("maxphysaddr_bits", "it can't be chosen"),
    _Limit("", "hw_vm_mode", _VM, "guests are fully virtualised"),
    _Limit("", "vm_mode", _VM, "guests are fully virtualised"),
    _Limit("group_policy", "", frozenset({"", "none"}), "resources can't be had in groups"),
)

_BOUNDS = frozenset(f"quota:{name}" for name in (*throttle.DISK_LIMITS, *throttle.VIF_LIMITS))
_REFUSED = (
    ("quota:", "of what a guest uses only disks and interfaces can be bounded"),
    ("accel:", "there are no accelerators to be had, only mapped devices"),
)
_GROUPED = re.compile(r"(?:resources|trait)[a-zA-Z0-9_-]+:.*")
_PLACED = re.compile(r"(?P<kind>resources|trait):(?P<name>.*)", re.DOTALL)
_NAME = re.compile(r"[A-Z0-9_]+", re.ASCII)
_MEANINGS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "resources": (re.compile(r"[0-9]{1,9}"), "no number from 0 to 999999999"),
    "trait": (re.compile(r"required|forbidden"), "neither required nor forbidden"),
}


def check(asked: Asked) -> None:
    """Raise CannotError for the first impossible setting."""
    for limit in _LIMITS:
        text = asked.agreed(limit.spec, limit.image_property)
        if text not in limit.harmless:
            name = limit.spec if asked.extra_specs.get(limit.spec) else limit.image_property
            raise CannotError(f"{name}={text}: {limit.why}")
    for key, value in asked.extra_specs.items():
        for prefix, why in _REFUSED:
            if key.startswith(prefix) and key not in _BOUNDS:
                raise CannotError(f"{key}: {why}")
        if _GROUPED.fullmatch(key):
            raise CannotError(f"{key}: resources can't be had in groups, a host gives them all")
        _check_placed(key, value)
    for key, value in asked.image_properties.items():
        if not key.startswith("resources"):
            _check_placed(key, str(value))


def _check_placed(key: str, value: str) -> None:
    """Raise CannotError for what placement could not understand: it would be ignored."""
    match = _PLACED.fullmatch(key)
    if match is None:
        return
    meaning, otherwise = _MEANINGS[match["kind"]]
    if _NAME.fullmatch(match["name"]) is None:
        raise CannotError(f"{key} names nothing: a name has A to Z, 0 to 9 and _")
    if meaning.fullmatch(value) is None:
        raise CannotError(f"{key}={value} is {otherwise}")
