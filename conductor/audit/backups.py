"""Compares the archives of backups with the record. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from common.messages.inventory import ClusterInventory, SeenBackup
from common.resources.volumes import BackupStatus
from conductor.audit.facts import BackupFacts, Facts, Finding


def backups(facts: Facts) -> Iterator[Finding]:
    """Yield findings for archives of this cloud without a record, and for missing archives."""
    known = {one.id: one for one in facts.backups}
    for cluster, inventory in facts.inventories.items():
        seen = inventory.backups or ()
        for one in seen:
            record = known.get(one.backup_id)
            recorded = record is not None and record.archive == one.volid
            if (
                one.cloud == facts.cloud
                and not recorded
                and one.backup_id not in facts.busy_backups
            ):
                yield _without_record(cluster, one)
        if inventory.backups is not None and not inventory.short and not inventory.unseen:
            yield from _missing(facts, inventory)


def _without_record(cluster: str, seen: SeenBackup) -> Finding:
    where = "" if seen.shared else f"{seen.node}/"
    return Finding(
        "backup_without_record",
        f"{cluster}/{where}{seen.volid}",
        f"Its notes name backup {seen.backup_id}, which the record doesn't have there.",
        cluster=cluster,
        node=seen.node,
        evidence={
            "volid": seen.volid,
            "storage": seen.volid.partition(":")[0],
            "backup": seen.backup_id,
            "bytes": seen.size_bytes,
        },
    )


def _missing(facts: Facts, inventory: ClusterInventory) -> Iterator[Finding]:
    there = {one.volid for one in inventory.backups or ()}
    for one in facts.backups:
        here = one.cluster == inventory.cluster and one.status == BackupStatus.AVAILABLE
        if here and one.archive not in there and one.id not in facts.busy_backups:
            yield _of_record(one, inventory.cluster, facts.cloud)


def _of_record(record: BackupFacts, cluster: str, cloud: str) -> Finding:
    volid = str(record.archive)
    path = f"/nodes/{record.node}/storage/{volid.partition(':')[0]}/content/{volid}"
    notes = f"micronova: backup={record.id} cloud={cloud}"
    return Finding(
        "backup_missing",
        record.id,
        f"Backup {record.id} is {record.archive} by the record, which cluster {cluster} doesn't "
        "list with its notes.",
        cluster=cluster,
        node=record.node,
        evidence={
            "backup": record.id,
            "volid": record.archive,
            "marks": f"pvesh set {quote(path)} --notes '{notes}'",
        },
    )
