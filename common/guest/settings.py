"""Settings of flavors and images that this cloud understands, and what each does: a table.

Those that are refused are in ``limits``; those whose names have a part of their own are `OPEN`.
Clients read the table as metadata definitions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from common.guest.hardware import CHOICES
from common.guest.rescue import CD_BUSES
from common.guest.throttle import DISK_LIMITS, VIF_LIMITS


@dataclass(frozen=True)
class Setting:
    """One setting, by its name in flavors, in images, or in both."""

    spec: str
    """The extra spec; empty: flavors haven't it."""
    image_property: str
    """The image's property; empty: images haven't it."""
    title: str
    does: str
    """What it becomes in Proxmox VE, and where it counts."""
    type: str = "string"
    """``string``, ``integer`` or ``boolean``."""
    values: tuple[str, ...] = ()
    """The values that it may have; none: others than these can't be named."""


def _both(name: str, title: str, does: str, kind: str = "string", *values: str) -> Setting:
    """Return one by the name after ``hw:`` in flavors and ``hw_`` in images."""
    known = values or tuple(filter(None, CHOICES.get(f"hw_{name}", ())))
    return Setting(f"hw:{name}", f"hw_{name}", title, does, kind, known)


def _image(name: str, title: str, does: str, kind: str = "string", *values: str) -> Setting:
    known = values or tuple(filter(None, CHOICES.get(name, ())))
    return Setting("", name, title, does, kind, known)


#: a bound's name after ``quota:`` → what it becomes
_BOUNDS: Mapping[str, str] = {
    **dict.fromkeys(
        DISK_LIMITS,
        "mbps_rd, mbps_wr, mbps, iops_rd, iops_wr or iops of each of the server's own disks, not "
        "of volumes.",
    ),
    **dict.fromkeys(
        VIF_LIMITS,
        "rate of each interface, KiB a second; Proxmox VE bounds both directions alike, and peaks "
        "and bursts are its own.",
    ),
}


def _bound(name: str, does: str) -> Setting:
    title = name.removesuffix("_sec").replace("_", " ").capitalize()
    return Setting(f"quota:{name}", "", title, does, "integer")


_TOPOLOGY = "sockets and cores of the VM, whose product is the flavor's VCPUs"

SETTINGS = (
    _both("cpu_sockets", "Sockets", f"The number of sockets: {_TOPOLOGY}.", "integer"),
    _both("cpu_cores", "Cores", f"The number of cores of a socket: {_TOPOLOGY}.", "integer"),
    _both("cpu_max_sockets", "Most sockets", f"At most so many: {_TOPOLOGY}.", "integer"),
    _both("cpu_max_cores", "Most cores", f"At most so many of a socket: {_TOPOLOGY}.", "integer"),
    _both("cpu_threads", "Threads", "Only 1: guests have one thread a core.", "integer", "1"),
    _both(
        "numa_nodes",
        "NUMA nodes",
        "numa: 1 and a numaN for each node, which the guest sees; nothing is pinned. What a node "
        "has is said by hw:numa_cpus.N and hw:numa_mem.N.",
        "integer",
    ),
    _both("tpm_version", "TPM", "A TPM: tpmstate0 on the root disk's storage."),
    _both(
        "viommu_model", "Virtual IOMMU", "machine: …,viommu=…; intel needs the machine type q35."
    ),
    _both("watchdog_action", "Watchdog", "watchdog: model=i6300esb,action=…"),
    _both("serial_port_count", "Serial ports", "serial0 …, 4 at most.", "integer"),
    _both(
        "vif_multiqueue_enabled",
        "Queues of interfaces",
        "queues= of the network interfaces, one for each VCPU.",
        "boolean",
    ),
    Setting(
        "os:secure_boot",
        "os_secure_boot",
        "Secure boot",
        "UEFI firmware whose efidisk0 has pre-enrolled-keys=1.",
        values=tuple(filter(None, CHOICES["os_secure_boot"])),
    ),
    Setting(
        "hw:hide_hypervisor_id",
        "img_hide_hypervisor_id",
        "Hide the hypervisor",
        "cpu: …,hidden=1: the guest does not see that it is virtual.",
        "boolean",
    ),
    Setting(
        "pci_passthrough:alias",
        "",
        "Mapped devices",
        "Devices of the cluster's resource mappings, as gpu:1,nic:2: hostpciN: mapping=…",
    ),
    Setting(
        "ha:rule",
        "",
        "High availability rule",
        "The name of a node-affinity rule of Proxmox VE, whose nodes servers are built on.",
    ),
    *(_bound(name, does) for name, does in _BOUNDS.items()),
    Setting(
        "hw_rng:allowed",
        "",
        "Random number generator",
        "false: there is none, whatever the image asks.",
        "boolean",
    ),
    Setting("hw_rng:rate_bytes", "", "Random bytes", "max_bytes of rng0.", "integer"),
    Setting(
        "hw_rng:rate_period",
        "",
        "Period of random bytes",
        "period of rng0, milliseconds.",
        "integer",
    ),
    Setting(
        "hw_video:ram_max_mb",
        "",
        "Most display memory",
        "The most that an image may ask for, MiB.",
        "integer",
    ),
    _image("hw_video_ram", "Display memory", "vga: …,memory=, MiB, 4 to 512.", "integer"),
    _image("hw_disk_bus", "Bus of the root disk", "scsi0 (virtio-scsi), virtio0, sata0 or ide0."),
    _image("hw_rng_model", "Random number generator", "rng0: source=/dev/urandom."),
    _image(
        "hw_firmware_type",
        "Firmware",
        "uefi is bios: ovmf, an efidisk0 on the root disk's storage and the machine type q35.",
    ),
    _image(
        "hw_machine_type",
        "Machine type",
        "machine: pc, q35, pc-q35-9.2 …; hosts whose newest type is older are refused.",
    ),
    _image("hw_vif_model", "Model of interfaces", "The model of the network interfaces."),
    _image("hw_video_model", "Display", "vga: the display."),
    _image("hw_rescue_bus", "Bus of the rescue CD", "Where a rescue CD is.", "string", *CD_BUSES),
    _image(
        "hw_rescue_device",
        "Rescue device",
        "What a server is rescued from: an ISO image is a CD, others are disks.",
        "string",
        *("cdrom", "disk"),
    ),
    _image("hw_architecture", "Architecture", "Hosts of another architecture are refused."),
    _image("img_hv_type", "Hypervisor type", "Hosts of another hypervisor type are refused."),
    _image("os_type", "Operating system", "windows is ostype: win11; others are l26."),
    _image("os_distro", "Distribution", "For people, and for what reads an image's metadata."),
    _image("os_version", "Version", "For people, and for what reads an image's metadata."),
    _image("os_admin_user", "Administrator", "The user whose password the guest agent sets."),
)

OPEN = (
    Setting(
        "trait:",
        "trait:",
        "Trait",
        "required: only hosts with this trait take the server; forbidden: only those without it.",
        values=("required", "forbidden"),
    ),
    Setting(
        "resources:",
        "",
        "Resources of a host",
        "So much of this class is claimed of the host, in place of the flavor's size; 0: none.",
        "integer",
    ),
    Setting(
        "aggregate_instance_extra_specs:",
        "",
        "Metadata of aggregates",
        "Only hosts of aggregates whose metadata have this item take the server.",
    ),
    Setting(
        "capabilities:",
        "",
        "Capabilities of a host",
        "Only hosts whose value matches take the server, by operators such as >= 8 or <in> avx.",
    ),
    Setting("hw:numa_cpus.", "hw_numa_cpus.", "Processors of a NUMA node", "cpus of this numaN."),
    Setting("hw:numa_mem.", "hw_numa_mem.", "Memory of a NUMA node", "memory of this numaN, MiB."),
)
"""Settings whose names only begin so, and end with what they are about."""


def of_spec(name: str) -> Setting | None:
    """Return the setting that an extra spec is; None: this cloud gives it no meaning.

    >>> of_spec("hw:tpm_version").title, of_spec("trait:CUSTOM_GPU").title, of_spec("mine")
    ('TPM', 'Trait', None)
    """
    exact = (one for one in SETTINGS if one.spec == name)
    begun = (one for one in OPEN if name.startswith(one.spec))
    return next(itertools.chain(exact, begun), None)
