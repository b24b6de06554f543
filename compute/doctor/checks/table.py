"""All checks of one cluster, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from common.findings import Finding
from compute.doctor.checks import datacenter, networks, nodes, reach, rights, storages, vmids
from compute.doctor.facts import Facts

CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    reach.endpoints,
    reach.certificates,
    rights.lifetime,
    rights.least_privilege,
    rights.sight,
    nodes.serving,
    nodes.versions,
    nodes.clocks,
    nodes.processors,
    storages.active,
    storages.room,
    storages.everywhere,
    storages.sharing,
    networks.up,
    networks.alike,
    networks.migration,
    networks.zones,
    datacenter.tags,
    datacenter.scheduling,
    datacenter.high_availability,
    datacenter.guests,
    vmids.band,
    vmids.locks,
)
