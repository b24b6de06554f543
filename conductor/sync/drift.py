"""Compares agents' refreshes with the record. Pure.

Only servers without an open operation are compared, and only with refreshes that began well after
the last change of their record: Proxmox VE's list of VMs is up to ten seconds old.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from common.messages.facts import VmFacts, VmStates
from common.resources.states import PowerState, VmState, as_seen
from conductor.store.servers.vm_states import HostOf, Known

#: time before a search is repeated that found what it can't correct
SEARCH_AGAIN_SECONDS = 3600.0
#: ``VmFacts.kind`` of a server's VM
VM = "VM"


class Saw(enum.StrEnum):
    """The result of a search for a server's VM."""

    MOVED = "moved"
    VANISHED = "vanished"  #: nowhere
    FOREIGN = "foreign"  #: the VM with the VMID isn't ours
    UNMANAGED = "unmanaged"  #: on a node that no agent carries


@dataclass(frozen=True)
class Difference:
    """A server whose VM isn't as the record says."""

    known: Known
    node: str | None = None
    """Where it was seen; None: nowhere."""
    power_state: int | None = None
    """Set: only the power state differs."""


def differences(
    report: VmStates, servers: Iterable[Known], hosts: Mapping[str, HostOf], settle_seconds: float
) -> Iterator[Difference]:
    """Yield the servers with a new state that this message is entitled to report."""
    seen = {vm.vmid: vm for vm in report.vms if vm.kind == VM}
    others = {vm.vmid for vm in report.vms if vm.kind != VM}
    carried = {one.host for one in hosts.values() if one.worker == report.worker}
    settled = report.seen_at - datetime.timedelta(seconds=settle_seconds)
    for known in servers:
        if known.changed_at > settled:
            continue
        vm = seen.get(known.vmid)
        if vm is None:
            found = _absent(report, known, carried, others)
        else:
            found = _present(report, known, vm, carried, hosts)
        if found is not None:
            yield found


def _absent(
    report: VmStates, known: Known, carried: set[str], others: set[int]
) -> Difference | None:
    """Return whether it has vanished: missing twice from the whole cluster, its node included."""
    covered = report.low is not None and report.high is not None
    within = covered and report.low <= known.vmid <= report.high  # type: ignore[operator]
    gone = within or known.vmid in report.gone or known.vmid in others
    if not report.whole or not gone:
        return None
    if known.host not in carried or known.node not in report.nodes or known.saw == Saw.VANISHED:
        return None
    return Difference(known) if _due(report, known) else None


def _present(
    report: VmStates,
    known: Known,
    vm: VmFacts,
    carried: set[str],
    hosts: Mapping[str, HostOf],
) -> Difference | None:
    if not vm.node or vm.node not in report.nodes:
        return None
    there = hosts.get(vm.node)
    if known.host not in carried and (there is None or there.host not in carried):
        return None
    if known.saw in (Saw.VANISHED, Saw.FOREIGN) or vm.node != known.node:
        return Difference(known, vm.node) if _due(report, known) else None
    if vm.power_state == PowerState.NOSTATE or _may_be_paused(known, vm):
        return None
    stale = as_seen(known.vm_state, vm.power_state) != known.vm_state
    if vm.power_state != known.power_state or stale:
        return Difference(known, vm.node, vm.power_state)
    return None


def _may_be_paused(known: Known, vm: VmFacts) -> bool:
    """Return whether the list can't contradict the record: it shows a paused VM as running."""
    return known.vm_state == VmState.PAUSED and vm.power_state == PowerState.RUNNING


def _due(report: VmStates, known: Known) -> bool:
    """Return whether a search may help now."""
    if known.saw not in (Saw.FOREIGN, Saw.UNMANAGED):
        return True
    return report.seen_at - known.changed_at > datetime.timedelta(seconds=SEARCH_AGAIN_SECONDS)
