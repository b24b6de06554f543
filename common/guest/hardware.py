"""A guest's virtual hardware, from its flavor and its image. Pure.

Read the same everywhere: the scheduler refuses impossible hardware by it, the agent builds by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.digits import is_digits
from common.guest import limits, throttle, topology
from common.guest.asked import Asked, CannotError
from common.guest.throttle import Throttle
from common.guest.topology import NumaNode

PCI_ALIAS = "pci_passthrough:alias"
MAX_DEVICES = 16
MAX_SERIAL_PORTS = 4

_MACHINE = re.compile(r"(?:pc|q35|(?:pc-i440fx|pc-q35|pc)-(?P<version>[0-9]+(?:\.[0-9]+)+))")
_ALIAS = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):([0-9]{1,2})")
_NOT_IN_CLASSES = re.compile(r"[^A-Z0-9_]+")

_FIRMWARES = {"": "", "bios": "bios", "uefi": "uefi"}
_SECURE_BOOT = {"": "", "disabled": "", "optional": "", "required": "required"}
_TPM = {"": "", "1.2": "1.2", "2.0": "2.0"}
_WATCHDOG = {
    "": "",
    "disabled": "",
    **{one: one for one in ("none", "pause", "poweroff", "reset")},
}
_VIF = {"": "virtio", **{one: one for one in ("virtio", "e1000", "e1000e", "rtl8139", "vmxnet3")}}
_VIDEO = {"": "vga", **{one: one for one in ("vga", "cirrus", "qxl", "virtio", "none")}}
_RNG = {"": "", "virtio": "virtio"}
#: the bus of the root disk; what has no other meaning is Nova's default
DISK_BUSES = ("scsi", "virtio", "sata", "ide")
_DISK_BUS = {"": "scsi", **{one: one for one in DISK_BUSES}}
#: A server's own, kept with its image's properties: the bus that its create's block device mapping
#: names for the root disk, before which the image's hw_disk_bus doesn't count.
ROOT_BUS = "root_disk_bus"
#: MiB of a graphics card's memory that QEMU takes
_VIDEO_RAM = range(4, 513)
_IOMMU = {"": "", "none": "", "auto": "virtio", "virtio": "virtio", "intel": "intel"}

#: image property → the values that it may have
CHOICES: Mapping[str, Mapping[str, str]] = {
    "hw_firmware_type": _FIRMWARES,
    "os_secure_boot": _SECURE_BOOT,
    "hw_tpm_version": _TPM,
    "hw_watchdog_action": _WATCHDOG,
    "hw_vif_model": _VIF,
    "hw_video_model": _VIDEO,
    "hw_viommu_model": _IOMMU,
    "hw_disk_bus": _DISK_BUS,
    "hw_rng_model": _RNG,
}


@dataclass(frozen=True)
class Hardware:
    """A guest's hardware. Words are Nova's."""

    sockets: int = 1
    cores: int = 1
    """Cores per socket."""
    numa: tuple[NumaNode, ...] = ()
    uefi: bool = False
    secure_boot: bool = False
    tpm: str = ""
    """Version of the TPM; empty: none."""
    machine: str = ""
    """Machine type, e.g. ``q35`` or ``pc-i440fx-9.2``; empty: the hypervisor's default."""
    iommu: str = ""
    """Model of the virtual IOMMU; empty: none."""
    hidden: bool = False
    """Whether to hide from the guest that it is virtual."""
    multiqueue: bool = False
    """Whether network interfaces have a queue for each VCPU."""
    vif_model: str = "virtio"
    video_model: str = "vga"
    watchdog: str = ""
    """The action of the watchdog; empty: there is none."""
    serial_ports: int = 1
    windows: bool = False
    devices: tuple[tuple[str, int], ...] = ()
    """(name of a mapped device, how many of it), by name."""
    disk_bus: str = "scsi"
    """The bus of a root disk that is the server's own: one of ``DISK_BUSES``."""
    video_ram_mib: int = 0
    """The graphics card's memory; 0: the hypervisor's default."""
    rng: tuple[int, int] | None = None
    """The random number generator: at most so many bytes in so many milliseconds; (0, 0): as the
    hypervisor bounds it. None: there is none."""
    throttle: Throttle = field(default_factory=Throttle)

    @property
    def q35(self) -> bool:
        """Whether the machine type has the chipset Q35."""
        return "q35" in self.machine

    @property
    def machine_version(self) -> tuple[int, ...]:
        """The version in the machine type; empty: none."""
        match = _MACHINE.fullmatch(self.machine)
        return version(match["version"] or "") if match else ()


def read(
    vcpus: int,
    memory_mib: int,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
) -> Hardware:
    """Return the hardware of a guest of this size. Raises CannotError if it is impossible."""
    asked = Asked(extra_specs, image_properties)
    limits.check(asked)
    return of(vcpus, memory_mib, asked)


def of(vcpus: int, memory_mib: int, asked: Asked) -> Hardware:
    """Return the same; settings that this cloud refuses are not looked for."""
    sockets, cores = topology.sockets_and_cores(vcpus, asked)
    firmware = asked.among(_FIRMWARES, "", "hw_firmware_type")
    secure = bool(asked.among(_SECURE_BOOT, "os:secure_boot", "os_secure_boot"))
    if secure and firmware == "bios":
        raise CannotError("secure boot needs hw_firmware_type=uefi, the image says bios")
    uefi = secure or firmware == "uefi"
    return Hardware(
        sockets=sockets,
        cores=cores,
        numa=topology.numa_nodes(vcpus, memory_mib, asked),
        uefi=uefi,
        secure_boot=secure,
        tpm=asked.among(_TPM, "hw:tpm_version", "hw_tpm_version"),
        **_machine(asked, uefi),
        hidden=asked.flag("hw:hide_hypervisor_id", "img_hide_hypervisor_id"),
        multiqueue=asked.flag("hw:vif_multiqueue_enabled", "hw_vif_multiqueue_enabled"),
        vif_model=asked.among(_VIF, "", "hw_vif_model"),
        video_model=asked.among(_VIDEO, "", "hw_video_model"),
        watchdog=asked.among(_WATCHDOG, "hw:watchdog_action", "hw_watchdog_action"),
        serial_ports=_serial_ports(asked),
        windows=asked.agreed("", "os_type") == "windows",
        devices=tuple(sorted(devices(asked.extra_specs).items())),
        disk_bus=asked.among(_DISK_BUS, "", _bus_property(asked.image_properties)),
        video_ram_mib=_video_ram(asked),
        rng=_rng(asked),
        throttle=throttle.read(asked.extra_specs),
    )


def with_root_bus(image_properties: Mapping[str, Any], named: Any) -> dict[str, str]:
    """Return the image properties to store with a server, with the bus that its create names for
    its root disk; None: no bus named. The image's own value under that key is dropped. Pure."""
    kept = {name: str(value) for name, value in image_properties.items() if name != ROOT_BUS}
    return kept if named is None else {**kept, ROOT_BUS: str(named)}


def root_bus(image_properties: Mapping[str, Any]) -> str:
    """Return the bus of a root disk that is no volume; an unsupported bus counts as SCSI."""
    wanted = str(image_properties.get(_bus_property(image_properties), "")).strip().lower()
    return _DISK_BUS.get(wanted, _DISK_BUS[""])


def _bus_property(image_properties: Mapping[str, Any]) -> str:
    return ROOT_BUS if ROOT_BUS in image_properties else "hw_disk_bus"


def _video_ram(asked: Asked) -> int:
    """Return MiB, at most what the flavor allows where it says so."""
    text, most = asked.agreed("", "hw_video_ram"), asked.number("hw_video:ram_max_mb", "")
    if text in ("", "0"):
        return 0
    asked_for = asked.number("", "hw_video_ram") or 0
    if most is not None and asked_for > most:
        raise CannotError(f"hw_video_ram={text} is over the flavor's hw_video:ram_max_mb={most}")
    if asked_for not in _VIDEO_RAM:
        raise CannotError(
            f"hw_video_ram={text} can't be had, only {_VIDEO_RAM[0]} to {_VIDEO_RAM[-1]} MiB"
        )
    return asked_for


def _rng(asked: Asked) -> tuple[int, int] | None:
    """Return the random number generator that the image asks for, unless the flavor forbids it."""
    allowed = str(asked.extra_specs.get("hw_rng:allowed", "")).strip()
    may = not allowed or asked.flag("hw_rng:allowed", "")
    rate, period = (asked.number(f"hw_rng:rate_{one}", "") for one in ("bytes", "period"))
    if not (asked.among(_RNG, "", "hw_rng_model") and may):
        return None
    return rate or 0, period or 0


def _machine(asked: Asked, uefi: bool) -> dict[str, str]:
    """Return machine type and IOMMU; the default with UEFI firmware is q35."""
    iommu = asked.among(_IOMMU, "hw:viommu_model", "hw_viommu_model")
    machine = asked.agreed("", "hw_machine_type")
    if machine and _MACHINE.fullmatch(machine) is None:
        raise CannotError(f"hw_machine_type={machine} can't be had, only pc, q35, pc-q35-N.N …")
    machine = machine or ("q35" if uefi or iommu else "")
    if iommu == "intel" and "q35" not in machine:
        raise CannotError(f"hw_viommu_model=intel needs hw_machine_type=q35, not {machine}")
    return {"machine": machine, "iommu": iommu}


def _serial_ports(asked: Asked) -> int:
    count = asked.number("hw:serial_port_count", "hw_serial_port_count") or 1
    if count > MAX_SERIAL_PORTS:
        raise CannotError(f"{count} serial ports can't be had, at most {MAX_SERIAL_PORTS}")
    return count


def devices(extra_specs: Mapping[str, str]) -> dict[str, int]:
    """Return mapped devices by name, and how many of each: ``gpu:1,nic:2``. Raises CannotError."""
    text = extra_specs.get(PCI_ALIAS, "")
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _ALIAS.fullmatch(part)
        if match is None or not int(match[2]):
            raise CannotError(f"{PCI_ALIAS}={text} is no list of NAME:COUNT")
        found[match[1]] = found.get(match[1], 0) + int(match[2])
    if sum(found.values()) > MAX_DEVICES:
        raise CannotError(f"{sum(found.values())} devices can't be had, at most {MAX_DEVICES}")
    return found


def device_class(name: str) -> str:
    """Return the resource class that counts a mapped device."""
    return f"CUSTOM_PCI_{_NOT_IN_CLASSES.sub('_', name.upper())}"


def version(text: str) -> tuple[int, ...]:
    """Return ``10.1`` as (10, 1); an empty tuple for other texts."""
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(map(is_digits, parts)) else ()
