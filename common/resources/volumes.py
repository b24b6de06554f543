"""Volumes: statuses, and which action may begin in which; the options of `[volumes]`.

Names and rules are Cinder's (``cinder/objects/fields.py``, ``cinder/volume/api.py``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from oslo_config import cfg

from common import ids


class VolumeStatus(enum.StrEnum):
    """Status of a volume."""

    CREATING = "creating"
    DOWNLOADING = "downloading"  #: its content is copied from an image
    AVAILABLE = "available"
    RESERVED = "reserved"
    ATTACHING = "attaching"
    IN_USE = "in-use"
    DETACHING = "detaching"
    EXTENDING = "extending"
    RETYPING = "retyping"
    UPLOADING = "uploading"  #: its content is copied into an image
    REVERTING = "reverting"
    BACKING_UP = "backing-up"
    RESTORING_BACKUP = "restoring-backup"
    DELETING = "deleting"
    MAINTENANCE = "maintenance"
    AWAITING_TRANSFER = "awaiting-transfer"
    ERROR = "error"
    ERROR_DELETING = "error_deleting"
    ERROR_EXTENDING = "error_extending"
    ERROR_RESTORING = "error_restoring"  #: its content is what it was


class SnapshotStatus(enum.StrEnum):
    """Status of a snapshot of a volume."""

    CREATING = "creating"
    AVAILABLE = "available"
    DELETING = "deleting"
    ERROR = "error"
    ERROR_DELETING = "error_deleting"


class BackupStatus(enum.StrEnum):
    """Status of a backup of a volume."""

    CREATING = "creating"
    AVAILABLE = "available"
    DELETING = "deleting"
    RESTORING = "restoring"
    ERROR = "error"
    ERROR_DELETING = "error_deleting"


class SnapshotWay(enum.StrEnum):
    """How snapshots of a volume are made: by what Proxmox VE says that its storage can do."""

    ONLINE = "online"  #: by the storage, also while a running server uses the volume
    OFFLINE = "offline"  #: inside its file, which no running server may have open
    COPY = "copy"  #: as a volume of its own, while no server has the volume


class AttachStatus(enum.StrEnum):
    """Status of an attachment."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"


class VolumeAction(enum.StrEnum):
    """Operations about a volume: what ``operations.action`` says."""

    CREATE = "create-volume"
    DELETE = "delete-volume"
    EXTEND = "extend-volume"
    REVERT = "revert-volume"
    REIMAGE = "reimage-volume"
    RETYPE = "retype-volume"
    UPLOAD = "upload-volume"
    PARK = "park-volume"  #: by itself, after a failure
    TAKE_SNAPSHOT = "create-snapshot"
    DELETE_SNAPSHOT = "delete-snapshot"
    # These end as they begin: they change records alone.
    OFFER = "create-transfer"
    ACCEPT = "accept-transfer"
    WITHDRAW = "delete-transfer"
    BACK_UP = "create-backup"
    DELETE_BACKUP = "delete-backup"
    RESTORE = "restore-backup"


#: operations about a server
ATTACH, DETACH = "attach_volume", "detach_volume"

#: the SCSI slot of a server's root disk
ROOT_SLOT = 0
#: the SCSI slots that other volumes get: 14 and 15 are a rescued server's, and from 27 on there
#: are local disks (``common.resources.local_disks``)
SLOTS = (*range(1, 14), *range(16, 27))

_S = VolumeStatus
_WELL = frozenset({_S.AVAILABLE})
_BROKEN = frozenset({_S.ERROR, _S.ERROR_EXTENDING, _S.ERROR_RESTORING})


@dataclass(frozen=True)
class Rule:
    """When an action may begin, and the volume's status during and after it."""

    begins: frozenset[VolumeStatus]
    during: VolumeStatus | None
    """None: the status doesn't change."""
    done: VolumeStatus | None
    """None: the volume is deleted, or its status is restored."""
    failed: VolumeStatus | None
    """None: the former status."""
    alone: bool = True
    """Whether the volume can't be copied, nor its snapshots made or removed, at the same time."""


RULES: Mapping[str, Rule] = {
    VolumeAction.CREATE: Rule(frozenset(), _S.CREATING, _S.AVAILABLE, _S.ERROR),
    VolumeAction.DELETE: Rule(
        frozenset({*_WELL, *_BROKEN, _S.ERROR_DELETING}), _S.DELETING, None, _S.ERROR_DELETING
    ),
    VolumeAction.EXTEND: Rule(_WELL, _S.EXTENDING, None, _S.ERROR_EXTENDING),
    VolumeAction.REVERT: Rule(_WELL, _S.REVERTING, _S.AVAILABLE, _S.ERROR),
    # As in Cinder, a volume in error remains in error: the former status is restored.
    VolumeAction.REIMAGE: Rule(frozenset({*_WELL, _S.ERROR}), _S.DOWNLOADING, None, _S.ERROR),
    VolumeAction.RETYPE: Rule(_WELL, _S.RETYPING, None, None),
    VolumeAction.UPLOAD: Rule(_WELL, _S.UPLOADING, None, None),
    VolumeAction.BACK_UP: Rule(_WELL, _S.BACKING_UP, None, None),
    VolumeAction.RESTORE: Rule(_WELL, _S.RESTORING_BACKUP, _S.AVAILABLE, _S.ERROR_RESTORING),
    ATTACH: Rule(_WELL, _S.ATTACHING, _S.IN_USE, _S.AVAILABLE),
    DETACH: Rule(frozenset({_S.IN_USE}), _S.DETACHING, _S.AVAILABLE, _S.IN_USE, alone=False),
}

#: statuses in which a snapshot may be deleted
DELETABLE_SNAPSHOTS = frozenset(
    {SnapshotStatus.AVAILABLE, SnapshotStatus.ERROR, SnapshotStatus.ERROR_DELETING}
)

#: with ``reimage_reserved``
REIMAGED_RESERVED = frozenset({_S.AVAILABLE, _S.ERROR, _S.RESERVED})
#: statuses in which a backup may be deleted
DELETABLE_BACKUPS = frozenset(
    {BackupStatus.AVAILABLE, BackupStatus.ERROR, BackupStatus.ERROR_DELETING}
)

#: from 3.42 on also while a server uses the volume
EXTENDABLE_IN_USE = frozenset({_S.AVAILABLE, _S.IN_USE})


def serial(volume_id: str) -> str:
    """Return the serial number that the guest sees: a SCSI disk's has at most 20 characters."""
    return volume_id[:20]


#: what the description of a snapshot in its holder begins with
_SNAPSHOT = "micronova: snapshot="


def snapname(snapshot_id: str) -> str:
    """Return the name of a snapshot in its holder: 2 to 40 characters, a letter first."""
    return f"s{snapshot_id.replace('-', '')[:19]}"


def snapshot_description(snapshot_id: str, user_id: str) -> str:
    """Return the description of a snapshot in its holder: which it is, and who had it taken."""
    return f"{_SNAPSHOT}{snapshot_id} user={user_id}"


def snapshot_named(description: str) -> tuple[str | None, str]:
    """Return the snapshot and the user that a description names; None, empty: it names none."""
    first, *rest = description.removeprefix(_SNAPSHOT).split() or [""]
    if not description.startswith(_SNAPSHOT) or not ids.is_uuid(first):
        return None, ""
    user = dict(word.partition("=")[::2] for word in rest).get("user", "")
    return first, user if ids.is_identity(user) else ""


def device(slot: int) -> str:
    """Return the name that the API shows for a SCSI slot of a VM: ``/dev/sdb`` for 1."""
    letters = ""
    number = slot
    while True:
        letters = chr(ord("a") + number % 26) + letters
        number = number // 26 - 1
        if number < 0:
            return f"/dev/sd{letters}"


OPTIONS = [
    cfg.StrOpt(
        "default_type",
        help="Volume type of volumes whose users name none. Without it any storage for disks is "
        "taken: a shared one before others, that with most room.",
    ),
    cfg.StrOpt(
        "backup_storage",
        help="Storage of content `backup` that backups of volumes go to. Without it one is chosen "
        "that the volume's node has: a shared one before others, that with most room.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options of `[volumes]`; idempotent."""
    conf.register_opts(OPTIONS, group="volumes")
