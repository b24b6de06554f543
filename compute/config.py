"""Options of the compute service. The driver's own options are with the driver."""

from __future__ import annotations

import socket

from oslo_config import cfg

from compute.hypervisor.proxmox import settings

GROUP = "compute"

OPTIONS = [
    cfg.StrOpt(
        "worker",
        default=socket.gethostname(),
        sample_default="<host name>",
        help="Name of this worker on the message bus; unique among all workers of the cloud.",
    ),
    cfg.StrOpt(
        "driver",
        default="proxmox",
        choices=[
            ("proxmox", "Proxmox VE clusters, see [proxmox]"),
            ("null", "no hypervisor: VMs live in memory, to measure the control plane"),
        ],
        help="What the agents of this worker act on.",
    ),
    cfg.StrOpt(
        "availability_zone",
        default="nova",
        help="Availability zone of the hosts, where their cluster names no other.",
    ),
    cfg.IntOpt(
        "heartbeat_seconds",
        default=10,
        min=1,
        max=300,
        help="Seconds between two heartbeats. A longer time makes a dead worker show later.",
    ),
    cfg.IntOpt(
        "observe_seconds",
        default=10,
        min=1,
        max=3600,
        help="Seconds between two bulk looks at a cluster (two calls, whatever its size).",
    ),
    cfg.IntOpt(
        "content_seconds",
        default=60,
        min=1,
        max=86400,
        help="Seconds between two looks at a storage's importable images: how soon a new image "
        "is seen. One call per shared storage, one per node for local ones.",
    ),
    cfg.IntOpt(
        "detail_seconds",
        default=300,
        min=1,
        max=86400,
        help="Seconds between two looks at a node's processors, storages and bridges.",
    ),
    cfg.IntOpt(
        "threads",
        default=32,
        min=1,
        max=1024,
        help="Operations that this worker works on at the same time; further ones wait here.",
    ),
    cfg.IntOpt(
        "stop_seconds",
        default=30,
        min=0,
        max=600,
        help="Seconds that a stopping worker gives running operations to reach a stopping place; "
        "whichever worker gets their lease continues them.",
    ),
    cfg.IntOpt(
        "shutdown_seconds",
        default=60,
        min=0,
        max=3600,
        help="Seconds that a guest gets to power off or reboot by itself before it is made to.",
    ),
    cfg.FloatOpt(
        "cpu_allocation_ratio",
        default=4.0,
        min=0.01,
        help="Virtual CPUs that may be allocated for each physical one.",
    ),
    cfg.FloatOpt(
        "ram_allocation_ratio",
        default=1.0,
        min=0.01,
        help="Memory that may be allocated for each MiB. Over 1.0 guests may be killed.",
    ),
    cfg.FloatOpt(
        "disk_allocation_ratio",
        default=1.0,
        min=0.01,
        help="Disk that may be allocated for each GiB. Over 1.0 trusts thin storage.",
    ),
    cfg.IntOpt("reserved_vcpus", default=0, min=0, help="CPUs of a host that no server gets."),
    cfg.IntOpt(
        "reserved_memory_mib",
        default=1024,
        min=0,
        help="MiB of memory of a host that no server gets.",
    ),
    cfg.IntOpt(
        "reserved_disk_gib",
        default=0,
        min=0,
        help="GiB of the storage of root disks that no server gets.",
    ),
]

NULL_OPTIONS = [
    cfg.IntOpt("hosts", default=4, min=1, help="Hosts that are made up."),
    cfg.IntOpt("vcpus", default=64, min=1, help="CPUs of each."),
    cfg.IntOpt("memory_mib", default=262144, min=1, help="MiB of memory of each."),
    cfg.IntOpt("disk_gib", default=4096, min=1, help="GiB of disk of each."),
    cfg.ListOpt(
        "images",
        default=["debian-12", "ubuntu-24.04", "cirros"],
        help="Names of the images that are made up.",
    ),
    cfg.ListOpt("bridges", default=["vmbr0"], help="Bridges that every host has."),
    cfg.StrOpt("cluster", default="null", help="Name of the cluster; one worker each."),
    cfg.StrOpt("prefix", default="null", help="Beginning of the hosts' names."),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options; idempotent."""
    from compute.hypervisor.proxmox import settings

    conf.register_opts(OPTIONS, group=GROUP)
    conf.register_opts(NULL_OPTIONS, group="null")
    settings.register(conf)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS)), ("null", list(NULL_OPTIONS)), *settings.list_opts()]
