"""All checks of one cluster, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from common.findings import Finding
from compute.doctor.checks import (
    datacenter,
    networks,
    nodes,
    reach,
    rights,
    storages,
    templates,
    vmids,
)
from compute.doctor.facts import Facts

CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    reach.endpoints,
    reach.certificates,
    rights.lifetime,
    rights.user,
    rights.least_privilege,
    rights.sight,
    nodes.unread,
    nodes.serving,
    nodes.versions,
    nodes.clocks,
    nodes.daemons,
    nodes.processors,
    storages.active,
    storages.room,
    storages.everywhere,
    storages.sharing,
    storages.config_drives,
    storages.features,
    networks.up,
    networks.alike,
    networks.migration,
    networks.zones,
    datacenter.tags,
    datacenter.scheduling,
    datacenter.high_availability,
    datacenter.affinity_rules,
    datacenter.guests,
    datacenter.file_sizes,
    templates.owners,
    templates.whole,
    vmids.band,
    vmids.locks,
)
