"""The drivers of a worker's hypervisors, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oslo_config import cfg

from compute.hypervisor.null import NullHypervisor
from compute.hypervisor.port import Hypervisor
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor


def hypervisors(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    """Return the drivers that ``[compute] driver`` names. Raises ConfigurationError."""
    return _DRIVERS[conf.compute.driver](conf)


def _proxmox(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    return [ProxmoxHypervisor(conf, cluster) for cluster in settings.clusters(conf)]


_DRIVERS: Mapping[str, Callable[[cfg.ConfigOpts], list[Hypervisor]]] = {
    "proxmox": _proxmox,
    "null": lambda conf: [NullHypervisor(conf)],
}
