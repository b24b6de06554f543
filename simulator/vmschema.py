"""The options of a virtual machine as tables: names, values, and required privileges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from simulator import checks
from simulator.checks import Check, boolean, integer, number, one_of, text
from simulator.propstring import Format, Property
from simulator.vmformats import DRIVE, EFI, NET, TPM, UNUSED, properties


@dataclass(frozen=True)
class Option:
    """One option: `kind` is its type in answers (number or string), `group` who may set it."""

    kind: str = "string"
    check: Check | Format | None = None
    group: str = ""


_CPU, _MEMORY, _HARDWARE, _OPTIONS, _DISK, _CLOUDINIT, _POWER = (
    "VM.Config.CPU",
    "VM.Config.Memory",
    "VM.Config.HWType",
    "VM.Config.Options",
    "VM.Config.Disk",
    "VM.Config.Cloudinit",
    "VM.PowerMgmt",
)
NETWORK = "VM.Config.Network"

OPTIONS: dict[str, Option] = {
    "cores": Option("integer", integer(1), _CPU),
    "sockets": Option("integer", integer(1), _CPU),
    "vcpus": Option("integer", integer(1), _CPU),
    "cpu": Option(
        "string",
        Format(
            properties(
                "cputype reported-model flags hv-vendor-id phys-bits guest-phys-bits",
                hidden=boolean,
            ),
            default="cputype",
        ),
        _CPU,
    ),
    "cpulimit": Option("number", number(0, 128), _CPU),
    "cpuunits": Option("integer", integer(1, 262144), _CPU),
    "numa": Option("boolean", boolean, _CPU),
    "memory": Option(
        "string",
        Format({"current": Property(integer(16), required=True)}, default="current"),
        _MEMORY,
    ),
    "balloon": Option("integer", integer(0), _MEMORY),
    "shares": Option("integer", integer(0, 50000), _MEMORY),
    "allow-ksm": Option("boolean", boolean, _MEMORY),
    "acpi": Option("boolean", boolean, _HARDWARE),
    "hotplug": Option("string", None, _HARDWARE),
    "kvm": Option("boolean", boolean, _HARDWARE),
    "machine": Option("string", text(40), _HARDWARE),
    "scsihw": Option(
        "string",
        one_of("lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi"),
        _HARDWARE,
    ),
    "smbios1": Option(
        "string",
        Format(
            properties(
                "family manufacturer product serial sku version", uuid=checks.uuid, base64=boolean
            )
        ),
        _HARDWARE,
    ),
    "tablet": Option("boolean", boolean, _HARDWARE),
    "vga": Option(
        "string",
        Format(
            properties("type", memory=integer(4, 512), clipboard=one_of("vnc")), default="type"
        ),
        _HARDWARE,
    ),
    "watchdog": Option("string", None, _HARDWARE),
    "audio0": Option("string", None, _HARDWARE),
    "rng0": Option("string", None, _HARDWARE),
    "agent": Option(
        "string",
        Format(
            properties(
                "", enabled=boolean, fstrim_cloned_disks=boolean, type=one_of("virtio", "isa")
            )
            | {name: Property(boolean) for name in ("freeze-fs-on-backup", "guest-fsfreeze")},
            default="enabled",
        ),
        _OPTIONS,
    ),
    "autostart": Option("boolean", boolean, _OPTIONS),
    "bios": Option("string", one_of("seabios", "ovmf"), _OPTIONS),
    "description": Option("string", text(8192), _OPTIONS),
    "keyboard": Option("string", None, _OPTIONS),
    "localtime": Option("boolean", boolean, _OPTIONS),
    "migrate_downtime": Option("number", number(0), _OPTIONS),
    "migrate_speed": Option("integer", integer(0), _OPTIONS),
    "name": Option("string", checks.dns_name, _OPTIONS),
    "onboot": Option("boolean", boolean, _OPTIONS),
    "ostype": Option(
        "string",
        one_of(
            "other",
            "wxp",
            "w2k",
            "w2k3",
            "w2k8",
            "wvista",
            "win7",
            "win8",
            "win10",
            "win11",
            "l24",
            "l26",
            "solaris",
        ),
        _OPTIONS,
    ),
    "protection": Option("boolean", boolean, _OPTIONS),
    "reboot": Option("boolean", boolean, _OPTIONS),
    "startdate": Option("string", None, _OPTIONS),
    "startup": Option("string", None, _OPTIONS),
    "tdf": Option("boolean", boolean, _OPTIONS),
    "template": Option("boolean", boolean, _OPTIONS),
    "freeze": Option("boolean", boolean, _POWER),
    "boot": Option(
        "string", Format({"legacy": Property(), "order": Property()}, default="legacy"), _DISK
    ),
    "bootdisk": Option("string", None, _DISK),
    "vmstatestorage": Option("string", checks.storage_id, _DISK),
    "cicustom": Option("string", Format(properties("meta network user vendor")), _CLOUDINIT),
    "cipassword": Option("string", None, _CLOUDINIT),
    "citype": Option("string", one_of("configdrive2", "nocloud", "opennebula"), _CLOUDINIT),
    "ciuser": Option("string", None, _CLOUDINIT),
    "ciupgrade": Option("boolean", boolean, _CLOUDINIT),
    "nameserver": Option("string", None, _CLOUDINIT),
    "searchdomain": Option("string", None, _CLOUDINIT),
    "sshkeys": Option("string", checks.url_encoded, _CLOUDINIT),
    "tags": Option("string", checks.tags, "tags"),
    "vmgenid": Option(
        "string",
        checks.pattern(r"^(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])$"),
        "root",
    ),
    "lock": Option(
        "string",
        one_of(
            "backup",
            "clone",
            "create",
            "migrate",
            "rollback",
            "snapshot",
            "snapshot-delete",
            "suspending",
            "suspended",
        ),
        "root",
    ),
    "args": Option("string", None, "root"),
    "affinity": Option("string", None, "root"),
    "hookscript": Option("string", None, "root"),
    "arch": Option("string", one_of("x86_64", "aarch64"), "root"),
    "efidisk0": Option("string", EFI, "drive"),
    "tpmstate0": Option("string", TPM, "drive"),
    "cdrom": Option("string", None, "drive"),
}

_IPCONFIG = Format(
    properties("", ip=checks.ipv4_config, ip6=checks.ipv6_config, gw=checks.ipv4, gw6=checks.ipv6)
)
INDEXED: dict[str, tuple[int, Option]] = {
    "scsi": (31, Option("string", DRIVE, "drive")),
    "virtio": (16, Option("string", DRIVE, "drive")),
    "sata": (6, Option("string", DRIVE, "drive")),
    "ide": (4, Option("string", DRIVE, "drive")),
    "unused": (256, Option("string", UNUSED, "drive")),
    "net": (32, Option("string", NET, NETWORK)),
    "ipconfig": (32, Option("string", _IPCONFIG, _CLOUDINIT)),
    "serial": (4, Option("string", checks.pattern(r"^(/dev/.+|socket)$"), "serial")),
    "parallel": (3, Option("string", None, "root")),
    "usb": (14, Option("string", None, "device")),
    "hostpci": (16, Option("string", None, "device")),
    "numa": (8, Option("string", Format(properties("cpus hostnodes memory policy")), _CPU)),
    "virtiofs": (10, Option("string", None, "device")),
}
_INDEXED_NAME = re.compile(r"^([a-z]+)(\d+)$")


def option(name: str) -> Option | None:
    """Return the option of that name, or None."""
    found = OPTIONS.get(name)
    if found is not None:
        return found
    match = _INDEXED_NAME.match(name)
    if match is None or match.group(1) not in INDEXED:
        return None
    count, entry = INDEXED[match.group(1)]
    return entry if int(match.group(2)) < count else None


def is_drive(name: str) -> bool:
    """Return whether an option is a drive (unused disks are not)."""
    found = option(name)
    return found is not None and found.group == "drive" and not name.startswith("unused")


def typed(config: Mapping[str, str]) -> dict[str, str | int | float]:
    """Return a configuration as GET shows it: numbers for numeric options, else strings."""
    shown: dict[str, str | int | float] = {}
    for name, value in config.items():
        known = option(name)
        kind = known.kind if known is not None else "string"
        if kind in ("integer", "boolean"):
            shown[name] = int(value)
        elif kind == "number":
            shown[name] = float(value) if "." in value else int(value)
        else:
            shown[name] = value
    return shown
