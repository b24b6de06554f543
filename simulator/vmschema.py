"""The options of a virtual machine as tables: what may be set, how, and with which privilege."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from simulator import checks
from simulator.checks import Check, boolean, integer, number, one_of, text
from simulator.propstring import Format, Property


@dataclass(frozen=True)
class Option:
    """One option: kind decides how it comes back (number or string); `group` who may set it."""

    kind: str = "string"
    check: Check | Format | None = None
    group: str = ""


def _properties(names: str, **checked: Check) -> dict[str, Property]:
    return {name: Property() for name in names.split()} | {
        name: Property(check) for name, check in checked.items()
    }


NET_MODELS = [
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "virtio",
    "vmxnet3",
]

NET = Format(
    {
        "model": Property(one_of(*NET_MODELS), required=True),
        **_properties(
            "trunks",
            macaddr=checks.mac,
            bridge=text(64),
            queues=integer(0, 64),
            rate=number(0),
            tag=integer(1, 4094),
            firewall=boolean,
            link_down=boolean,
            mtu=integer(1, 65520),
            host_mtu=integer(),
        ),
    },
    default="model",
    aliases=dict.fromkeys(NET_MODELS, ("model", "macaddr")),
)

DRIVE = Format(
    {
        "file": Property(required=True),
        **{
            name: Property()
            for name in [
                "aio",
                "bps",
                "bps_max_length",
                "bps_rd",
                "bps_rd_max_length",
                "bps_wr",
                "bps_wr_max_length",
                "cyls",
                "heads",
                "secs",
                "trans",
                "iops",
                "iops_max",
                "iops_max_length",
                "iops_rd",
                "iops_rd_max",
                "iops_rd_max_length",
                "iops_wr",
                "iops_wr_max",
                "iops_wr_max_length",
                "mbps",
                "mbps_max",
                "mbps_rd",
                "mbps_rd_max",
                "mbps_wr",
                "mbps_wr_max",
                "model",
                "product",
                "queues",
                "scsiblock",
                "serial",
                "vendor",
                "wwn",
                "import-from",
                "size",
            ]
        },
        "media": Property(one_of("cdrom", "disk")),
        "format": Property(one_of("raw", "qcow", "qed", "qcow2", "vmdk", "cloop")),
        "cache": Property(one_of("none", "writethrough", "writeback", "unsafe", "directsync")),
        "discard": Property(one_of("ignore", "on")),
        "rerror": Property(one_of("ignore", "report", "stop")),
        "werror": Property(one_of("enospc", "ignore", "report", "stop")),
        "detect_zeroes": Property(boolean),
        **{
            name: Property(boolean)
            for name in ["backup", "replicate", "shared", "snapshot", "ssd", "iothread", "ro"]
        },
    },
    default="file",
    aliases=None,
)
EFI = Format(
    {
        **_properties(
            "import-from size ms-cert",
            format=one_of("raw", "qcow2", "vmdk"),
            efitype=one_of("2m", "4m"),
        ),
        "file": Property(required=True),
        "pre-enrolled-keys": Property(boolean),
    },
    default="file",
)
TPM = Format(
    {
        **_properties(
            "import-from size", format=one_of("raw", "qcow2"), version=one_of("v1.2", "v2.0")
        ),
        "file": Property(required=True),
    },
    default="file",
)
UNUSED = Format({"file": Property(required=True)}, default="file")

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
            _properties(
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
            _properties(
                "family manufacturer product serial sku version", uuid=checks.uuid, base64=boolean
            )
        ),
        _HARDWARE,
    ),
    "tablet": Option("boolean", boolean, _HARDWARE),
    "vga": Option(
        "string",
        Format(
            _properties("type", memory=integer(4, 512), clipboard=one_of("vnc")), default="type"
        ),
        _HARDWARE,
    ),
    "watchdog": Option("string", None, _HARDWARE),
    "audio0": Option("string", None, _HARDWARE),
    "rng0": Option("string", None, _HARDWARE),
    "agent": Option(
        "string",
        Format(
            _properties(
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
    "cicustom": Option("string", Format(_properties("meta network user vendor")), _CLOUDINIT),
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
    _properties("", ip=checks.ipv4_config, ip6=checks.ipv6_config, gw=checks.ipv4, gw6=checks.ipv6)
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
    "numa": (8, Option("string", Format(_properties("cpus hostnodes memory policy")), _CPU)),
    "virtiofs": (10, Option("string", None, "device")),
}
_INDEXED_NAME = re.compile(r"^([a-z]+)(\d+)$")
DRIVE_KINDS = ("scsi", "virtio", "sata", "ide")


def option(name: str) -> Option | None:
    """The option of that name, or None when there is none."""
    found = OPTIONS.get(name)
    if found is not None:
        return found
    match = _INDEXED_NAME.match(name)
    if match is None or match.group(1) not in INDEXED:
        return None
    count, entry = INDEXED[match.group(1)]
    return entry if int(match.group(2)) < count else None


def is_drive(name: str) -> bool:
    """Tell whether an option is a drive (an unused disk is none)."""
    found = option(name)
    return found is not None and found.group == "drive" and not name.startswith("unused")


def typed(config: Mapping[str, str]) -> dict[str, str | int | float]:
    """A configuration as GET shows it: numbers for numeric options, strings for all else."""
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
