"""Whether the database was restored, as the marks of VMs and vnets show. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from common.messages.inventory import ClusterInventory
from conductor.audit.facts import Facts, Finding
from conductor.store.restored import Marked

KIND = "record_restored"


def marked(inventory: ClusterInventory) -> Iterator[Marked]:
    """Yield the marks of a cluster that were read."""
    for vm in inventory.vms:
        if vm.mark is not None:
            yield Marked(inventory.cluster, vm.vmid, vm.mark)
    others = [one.mark for one in inventory.vnets or ()]
    others += [one.mark for one in inventory.backups or ()]
    for mark in others:
        if mark is not None:
            yield Marked(inventory.cluster, None, mark)


def restored(facts: Facts) -> Iterator[Finding]:
    """Yield that the database was restored, and that nobody has decided yet."""
    if facts.restored is not None:
        yield Finding(KIND, "database", facts.restored)
