"""Has agents look at the firewalls of VMs, where ports are filtered: a few requests each."""

from __future__ import annotations

from collections.abc import Mapping

from common import context
from common.messages.filters import Filter, FilterCheck
from common.messages.guests import GuestTarget
from common.messages.questions import CheckFilter
from conductor.audit.each import each
from conductor.audit.facts import Facts
from conductor.audit.nics import read_vms
from conductor.cloud import Cloud
from conductor.store.networks.filtering import filters

#: servers whose wanted firewalls are read in one go
AT_ONCE = 100


def firewalls(
    cloud: Cloud, workers: Mapping[str, str], facts: Facts, unseen: list[str]
) -> dict[str, FilterCheck] | None:
    """Return how the firewalls of the VMs that were read differ, by server.

    None: ports are not filtered here. ``workers``: cluster → the worker to ask; ``unseen``
    gets a sentence for each VM whose firewall could not be read.
    """
    if cloud.conf.networks.firewall == "off":
        return None
    targets = _targets(workers, facts)
    wanted = _wanted(cloud, sorted(targets))

    def ask(uuid: str) -> FilterCheck:
        return cloud.compute.ask(
            context.internal(), targets[uuid], CheckFilter(targets[uuid], wanted[uuid])
        )

    found: dict[str, FilterCheck] = {}
    for uuid, answer in each(sorted(targets), ask):
        if isinstance(answer, FilterCheck):
            found[uuid] = answer
        else:
            unseen.append(f"Cluster {targets[uuid].cluster}: {answer.message}")
    return found


def _targets(workers: Mapping[str, str], facts: Facts) -> dict[str, GuestTarget]:
    """Return the VMs to look at, by server: those that were read, with a port that is filtered,
    or is not to be any more."""
    filtered = {port.server_uuid for port in facts.ports if port.port_security is not None}
    return {
        server.uuid: GuestTarget(
            server.uuid, workers[str(server.cluster)], str(server.cluster), vm.node, vm.vmid
        )
        for server, vm in read_vms(facts)
        if server.uuid in filtered and vm.nics is not None and server.cluster in workers
    }


def _wanted(cloud: Cloud, uuids: list[str]) -> dict[str, Filter]:
    found: dict[str, Filter] = {}
    for start in range(0, len(uuids), AT_ONCE):
        with cloud.store.read() as connection:
            found |= filters.wanted_of(connection, uuids[start : start + AT_ONCE])
    return found
