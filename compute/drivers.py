"""The drivers of a worker's hypervisors, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from compute.hypervisor.port import Hypervisor

if TYPE_CHECKING:
    from compute.doctor.rounds import Rounds


def hypervisors(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    """Return the drivers that ``[compute] driver`` names. Raises ConfigurationError."""
    return _DRIVERS[conf.compute.driver](conf)


def rounds(conf: cfg.ConfigOpts, made: Sequence[Hypervisor]) -> Rounds | None:
    """Return what examines the clusters of these drivers; None: nothing does."""
    if conf.compute.driver != "proxmox" or not conf.compute.doctor_seconds:
        return None
    from compute.doctor.rounds import Rounds
    from compute.hypervisor.proxmox.driver import ProxmoxHypervisor

    clusters = [one for one in made if isinstance(one, ProxmoxHypervisor)]
    snapshots = {one.settings: one.last_snapshot for one in clusters}
    return Rounds(conf, snapshots, conf.compute.doctor_seconds)


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
