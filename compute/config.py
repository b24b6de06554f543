"""Options of the compute service. The driver's own options are with the driver."""

from __future__ import annotations

import socket

from oslo_config import cfg

from common.metrics import config as metrics
from common.resources import networks
from compute import drivers
from compute.hypervisor.proxmox import settings

GROUP = "compute"

OPTIONS = [
    cfg.StrOpt(
        "worker",
        default=socket.gethostname(),
        sample_default="<host name>",
        regex=r"^[^@]+$",
        help="Name of this worker on the message bus; unique among all workers of the cloud.",
    ),
    cfg.StrOpt(
        "driver",
        default="proxmox",
        regex=drivers.NAME,
        help="Hypervisor driver of this worker's agents: proxmox, or package.module:function of "
        "another, which returns its hypervisors for the configuration.",
    ),
    cfg.StrOpt(
        "availability_zone",
        default="nova",
        help="Availability zone of the hosts, unless their cluster names another.",
    ),
    cfg.IntOpt(
        "heartbeat_seconds",
        default=10,
        min=1,
        max=300,
        help="Seconds between two heartbeats. With a longer time a dead worker is noticed later.",
    ),
    cfg.IntOpt(
        "observe_seconds",
        default=10,
        min=1,
        max=3600,
        help="Seconds between two refreshes of a cluster (two calls for a cluster of any size).",
    ),
    cfg.IntOpt(
        "content_seconds",
        default=60,
        min=1,
        max=86400,
        help="Seconds between two reads of a storage's importable images: how soon a new image "
        "is seen. One call per shared storage, one per node for local ones.",
    ),
    cfg.IntOpt(
        "detail_seconds",
        default=300,
        min=1,
        max=86400,
        help="Seconds between two reads of a node's processors, storages and bridges.",
    ),
    cfg.IntOpt(
        "doctor_seconds",
        default=3600,
        min=0,
        max=604800,
        help="Seconds between two examinations of this worker's clusters (see docs/doctor.md). "
        "The first follows the first refresh. Each makes some ten calls to a cluster and three "
        "to each node, one after the other, and logs its findings. 0: no examinations.",
    ),
    cfg.IntOpt(
        "threads",
        default=32,
        min=1,
        max=1024,
        help="Operations that this worker carries out at the same time; further ones wait.",
    ),
    cfg.IntOpt(
        "stop_seconds",
        default=30,
        min=0,
        max=600,
        help="Seconds that a stopping worker gives running operations to reach a safe end; the "
        "worker that gets their lease continues them.",
    ),
    cfg.IntOpt(
        "shutdown_seconds",
        default=60,
        min=0,
        max=3600,
        help="Seconds that a guest gets to power off or reboot by itself before it is forced to.",
    ),
    cfg.IntOpt(
        "health_checks",
        default=16,
        min=0,
        max=500,
        help="Checks of members of groups that may run at the same time: pings of guests' agents, "
        "and connections over TCP and HTTP to members' addresses on networks of the operator's, "
        "from this worker's machine. 0: it checks none.",
    ),
    cfg.IntOpt(
        "consoles",
        default=100,
        min=0,
        max=10_000,
        help="Consoles that may be open through this worker at the same time.",
    ),
    cfg.IntOpt(
        "consoles_of_server",
        default=5,
        min=1,
        max=100,
        help="Consoles of one server that may be open at the same time.",
    ),
    cfg.IntOpt(
        "console_log_kib",
        default=64,
        min=0,
        max=1024,
        help="KiB of each server's serial output during boot that this worker holds in memory for "
        "the console log, for its last 1000 servers. 0: no logs; requests for them get 501. A "
        "hypervisor without consoles has no logs either.",
    ),
    cfg.IntOpt(
        "console_log_lines",
        default=20,
        min=1,
        max=1000,
        help="Maximum number of serial lines read at the same time for logs; each costs its node "
        "three processes for up to ten minutes. A server that boots while the maximum is reached "
        "has no log until its next boot.",
    ),
    cfg.StrOpt(
        "console_ca_file",
        help="CA certificates to check console proxies with; default: the system's.",
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
        help="Disk that may be allocated for each GiB. Over 1.0 relies on thin storage.",
    ),
    cfg.IntOpt(
        "reserved_vcpus",
        default=0,
        min=0,
        help="CPUs of a host that are not allocated to servers.",
    ),
    cfg.IntOpt(
        "reserved_memory_mib",
        default=1024,
        min=0,
        help="MiB of a host's memory that are not allocated to servers.",
    ),
    cfg.IntOpt(
        "reserved_disk_gib",
        default=0,
        min=0,
        help="GiB of the storage for root disks that are not allocated to servers.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options; idempotent."""
    metrics.register(conf)
    networks.register(conf)
    conf.register_opts(OPTIONS, group=GROUP)
    settings.register(conf)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS)), *settings.list_opts()]
