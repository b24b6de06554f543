"""Moves and resizes of servers as data: their kinds and statuses, under Nova's names."""

from __future__ import annotations

import enum


class MigrationType(enum.StrEnum):
    """What a migration changes."""

    MIGRATION = "migration"  #: the host of a stopped VM
    RESIZE = "resize"  #: the flavor, and perhaps the host
    LIVE = "live-migration"  #: the host of a running VM
    EVACUATION = "evacuation"  #: the host, as the old one is lost


class MigrationStatus(enum.StrEnum):
    """Progress of a migration."""

    ACCEPTED = "accepted"
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    PRE_MIGRATING = "pre-migrating"
    MIGRATING = "migrating"
    POST_MIGRATING = "post-migrating"
    FINISHED = "finished"  #: to be confirmed or reverted
    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    REVERTING = "reverting"
    REVERTED = "reverted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"
    ERROR = "error"


#: of live migrations: those that a server lists, and that may be aborted
IN_PROGRESS = frozenset(
    {
        MigrationStatus.QUEUED,
        MigrationStatus.PREPARING,
        MigrationStatus.RUNNING,
        MigrationStatus.POST_MIGRATING,
    }
)
