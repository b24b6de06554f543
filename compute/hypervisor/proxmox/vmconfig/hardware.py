"""A server's VM as Proxmox VE's parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from common.messages.commands import Build, Nic
from compute.hypervisor.proxmox.vmconfig import disks, guest
from compute.hypervisor.proxmox.vmconfig.marks import Mark

TAG = "micronova"

_DEFAULT_MEMORY_MIB = 512
_NOT_DNS = re.compile(r"[^a-z0-9.-]+")
_NOT_TAG = re.compile(r"[^a-z0-9_.+-]+")


def parameters(
    build: Build, mark: Mark, cpu_type: str, config_drive: str | None
) -> dict[str, Any]:
    """Return all parameters but the disks. ``config_drive`` is the ISO's volume, if there is one.

    An image that is a CD is inserted.

    Raises HypervisorError if the server asks for impossible hardware.
    """
    has = guest.of(build)
    model, queues = guest.network(has, build.vcpus)
    slot = disks.root_slot_of(has, from_volume=build.boots_from_volume)
    found: dict[str, Any] = {
        "name": vm_name(build),
        "description": mark.description(),
        "tags": ";".join(dict.fromkeys((TAG, *(_tag(tag) for tag in build.tags if _tag(tag))))),
        "smbios1": f"uuid={build.resource_id}",
        "memory": build.memory_mib,
        "scsihw": "virtio-scsi-single",
        "agent": "enabled=1",
        # for serial consoles; it can't be added while the guest runs
        "serial0": "socket",
    } | guest.options(has, cpu_type)
    if not build.boots_from_volume:
        # Proxmox VE takes no order with a disk that isn't there yet: a volume brings it along.
        found[disks.BOOT] = disks.boot_order(build.image, slot)
    found |= {
        f"net{number}": net(nic, model, queues, guest.rate(has))
        for number, nic in enumerate(build.nics)
    }
    if config_drive is not None:
        found[disks.CONFIG_DRIVE] = disks.cd(config_drive)
    if build.image is not None and build.image.cd:
        found[disks.install_cd(slot)] = disks.cd(build.image.volid)
    return found


def net(nic: Nic, model: str = "virtio", queues: int = 0, rate: str = "") -> str:
    """Return one network interface. ``rate``: MiB a second, in each direction."""
    parts = [f"{model}={nic.mac.upper()}", f"bridge={nic.bridge}"]
    if nic.mtu is not None:
        parts.append(f"mtu={nic.mtu}")
    if nic.vlan is not None:
        parts.append(f"tag={nic.vlan}")
    if nic.filtered:
        parts.append("firewall=1")
    if nic.down:
        parts.append("link_down=1")
    if queues:
        parts.append(f"queues={queues}")
    if rate:
        parts.append(f"rate={rate}")
    return ",".join(parts)


def memory_mib(config: Mapping[str, Any]) -> int:
    """Return the memory in a configuration."""
    value = str(config.get("memory", _DEFAULT_MEMORY_MIB)).split(",", 1)[0]
    return int(value.rpartition("=")[2])


def vm_name(build: Build) -> str:
    """Return a DNS name similar to the server's name; Proxmox VE takes nothing else."""
    text = _NOT_DNS.sub("-", (build.hostname or build.name).lower())
    labels = [label[:63].strip("-") for label in text.split(".")]
    name = ".".join(label for label in labels if label)[:253].strip(".-")
    return name or f"vm-{build.placed.vmid}"


def config_drive_names(vmid: int, server_uuid: str) -> tuple[str, str]:
    """Return both names that it may have: a new one is uploaded beside the one in use."""
    name = f"micronova-{vmid}-{server_uuid}"
    return f"{name}.iso", f"{name}-2.iso"


CONFIG_DRIVE_NAME = r"/micronova-(?P<vmid>[0-9]+)-[0-9a-f-]{36}(?:-2)?\.iso$"
"""Finds the VMID in a config drive's volume."""


def template_name(image_id: str) -> str:
    """Return the name of an image's cached template."""
    return f"micronova-image-{image_id}"


def image_of_template(name: str) -> str | None:
    """Return the image that a template of this name holds, or None."""
    prefix = template_name("")
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def _tag(text: str) -> str:
    return _NOT_TAG.sub("-", text.lower()).strip("-.+")
