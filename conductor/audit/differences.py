"""Compares the facts and returns the differences. Pure.

What a server's open operation may still change is skipped: the operation will end, and if not,
``operation_overdue`` reports it.
"""

from __future__ import annotations

from conductor.audit.affinity import affinity
from conductor.audit.backups import backups
from conductor.audit.disks import disks
from conductor.audit.facts import Facts, Finding
from conductor.audit.firewalls import firewalls
from conductor.audit.holders import holders
from conductor.audit.image_files import image_files
from conductor.audit.nics import nics, tags_of_others
from conductor.audit.records import records
from conductor.audit.references import references
from conductor.audit.restored import restored
from conductor.audit.vms import vms
from conductor.audit.vnets import vnets
from conductor.audit.volume_snapshots import sizes, volume_snapshots
from conductor.audit.volumes import volumes


def differences(facts: Facts) -> list[Finding]:
    """Return all differences, each once, in a stable order."""
    found = [
        *restored(facts),
        *vms(facts),
        *volumes(facts),
        *holders(facts),
        *backups(facts),
        *references(facts),
        *volume_snapshots(facts),
        *sizes(facts),
        *image_files(facts),
        *vnets(facts),
        *records(facts),
        *affinity(facts),
        *nics(facts),
        *disks(facts),
        *tags_of_others(facts),
        *firewalls(facts),
    ]
    return sorted({one.key: one for one in found}.values(), key=lambda one: one.key)
