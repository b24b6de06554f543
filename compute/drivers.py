"""The drivers of a worker's hypervisors, made from the configuration."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from common.errors import ConfigurationError
from compute.hypervisor.port import Hypervisor

if TYPE_CHECKING:
    from compute.doctor.rounds import Rounds

PROXMOX = "proxmox"
#: the form of a driver's name
NAME = r"^(proxmox|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"


def hypervisors(conf: cfg.ConfigOpts) -> list[Hypervisor]:
    """Return the drivers that ``[compute] driver`` names. Raises ConfigurationError."""
    return _maker(conf.compute.driver)(conf)


def rounds(conf: cfg.ConfigOpts, made: Sequence[Hypervisor]) -> Rounds | None:
    """Return what examines the clusters of these drivers; None: nothing does."""
    if conf.compute.driver != PROXMOX or not conf.compute.doctor_seconds:
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


def _maker(name: str) -> Callable[[cfg.ConfigOpts], list[Hypervisor]]:
    if name == PROXMOX:
        return _proxmox
    try:
        made: Callable[[cfg.ConfigOpts], list[Hypervisor]] = pkgutil.resolve_name(name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"[compute] driver: {name} can't be loaded: {error}") from error
    return made
