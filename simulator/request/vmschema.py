"""The options of a virtual machine: names, required privileges, types in answers."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.request.apischema import methods, parameters

NETWORK = "VM.Config.Network"
_NOT_OPTIONS = frozenset(
    {
        "node",
        "vmid",
        "digest",
        "delete",
        "revert",
        "skiplock",
        "force",
        "background_delay",
        "import-working-storage",
    }
)
_CONFIG = parameters(methods()["/nodes/{node}/qemu/{vmid}/config"]["POST"])
NET_MODELS: tuple[str, ...] = tuple(_CONFIG["net0"]["format"]["model"]["enum"])
# The privilege that an option requires, by its name without a number, or how it is checked.
# Only root may set what is not listed.
_GROUPS = {
    "VM.Config.CPU": "cores sockets vcpus cpu cpulimit cpuunits numa",
    "VM.Config.Memory": "memory balloon shares allow-ksm",
    "VM.Config.HWType": "acpi hotplug kvm machine scsihw smbios tablet vga watchdog audio rng",
    "VM.Config.Options": "agent autostart bios description keyboard localtime migrate_downtime"
    " migrate_speed name onboot ostype protection reboot startdate startup tdf template",
    "VM.PowerMgmt": "freeze",
    "VM.Config.Disk": "boot bootdisk vmstatestorage",
    "VM.Config.Cloudinit": "cicustom cipassword citype ciupgrade ciuser nameserver searchdomain"
    " sshkeys ipconfig",
    NETWORK: "net",
    "drive": "scsi virtio sata ide unused efidisk tpmstate cdrom",
    "device": "usb hostpci virtiofs",
    "serial": "serial",
    "tags": "tags",
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}


def is_option(name: str) -> bool:
    """Return whether there is an option of that name."""
    return name in _CONFIG and name not in _NOT_OPTIONS


def group_of(name: str) -> str:
    """Return the privilege that an option requires, or how it is checked."""
    return _GROUP_OF.get(name.rstrip("0123456789"), "root") if is_option(name) else "root"


def is_drive(name: str) -> bool:
    """Return whether an option is a drive (unused disks are not)."""
    return group_of(name) == "drive" and not name.startswith("unused")


def typed(config: Mapping[str, str]) -> dict[str, str | int | float]:
    """Return a configuration as GET shows it: numbers for numeric options, else strings."""
    return {name: _typed(name, value) for name, value in config.items()}


def _typed(name: str, value: str) -> str | int | float:
    kind = _CONFIG.get(name, {}).get("type")
    if kind in ("integer", "boolean"):
        return int(value)
    if kind == "number" and "." in value:
        return float(value)
    return int(value) if kind == "number" else value
