"""The property strings of network cards, drives, EFI and TPM disks, as tables."""

from __future__ import annotations

from simulator import checks
from simulator.checks import Check, boolean, integer, number, one_of, text
from simulator.propstring import Format, Property


def properties(names: str, **checked: Check) -> dict[str, Property]:
    """Return a table of properties: those in `names` are unchecked, the others have a check."""
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
        **properties(
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
        **properties(
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
        **properties(
            "import-from size", format=one_of("raw", "qcow2"), version=one_of("v1.2", "v2.0")
        ),
        "file": Property(required=True),
    },
    default="file",
)
UNUSED = Format({"file": Property(required=True)}, default="file")
