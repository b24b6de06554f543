"""The drivers of a worker's hypervisors, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oslo_config import cfg

from compute.hypervisor.port import Hypervisor


def hypervisors(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    """Return the drivers that ``[compute] driver`` names. Raises ConfigurationError."""
    return _DRIVERS[conf.compute.driver](conf)


def _proxmox(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    from compute.hypervisor.proxmox import settings
    from compute.hypervisor.proxmox.driver import ProxmoxHypervisor

    return [ProxmoxHypervisor(conf, cluster) for cluster in settings.clusters(conf)]


def _null(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    from compute.hypervisor.null import NullHypervisor

    return [NullHypervisor(conf)]


_DRIVERS: Mapping[str, Callable[[cfg.ConfigOpts], list[Hypervisor]]] = {
    "proxmox": _proxmox,
    "null": _null,
}
