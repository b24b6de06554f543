"""Messages of block storage: how failed operations are numbered and worded.

Numbers up to 030 are Cinder's (``cinder/message/message_field.py``); 900 and above are of actions
that it has no messages about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.messages.reports import Category

#: type of the operation's resource → the message's; of servers: operations about their volumes
RESOURCES: Mapping[str, str] = {
    "volume": "VOLUME",
    "snapshot": "VOLUME_SNAPSHOT",
    "backup": "VOLUME_BACKUP",
    "server": "VOLUME",
}
UNKNOWN_ERROR, NO_BACKEND = "001", "003"


@dataclass(frozen=True)
class Event:
    """What failed: Cinder's number and words of the action, and the number of the detail."""

    action: str
    words: str
    detail: str = UNKNOWN_ERROR


SCHEDULE = Event("001", "schedule allocate volume", NO_BACKEND)
#: action of the operation → its event
EVENTS: Mapping[str, Event] = {
    "create-volume": Event("008", "create volume from backend storage", "012"),
    "extend-volume": Event("007", "extend volume", "010"),
    "upload-volume": Event("003", "copy volume to image", "004"),
    "reimage-volume": Event("016", "reimage volume", "028"),
    "create-snapshot": Event("009", "create snapshot", "013"),
    "delete-snapshot": Event("010", "delete snapshot", "016"),
    "create-backup": Event("013", "create backup", "020"),
    "delete-backup": Event("014", "delete backup", "025"),
    "restore-backup": Event("015", "restore backup", "026"),
    "attach_volume": Event("002", "attach volume", "021"),
    "detach_volume": Event("900", "detach volume", "022"),
    "delete-volume": Event("901", "delete volume"),
    "revert-volume": Event("902", "revert volume to snapshot"),
    "retype-volume": Event("903", "retype volume"),
}
#: of an action that a later release brings
OTHER = Event("999", "change volume")
#: actions about servers that are about volumes as well: their plans name the volume
OF_SERVERS = ("attach_volume", "detach_volume")

#: what owners read of a category; nothing in it names a host or a task
WORDS: Mapping[str, str] = {
    Category.NO_VALID_HOST: "Could not find any available backend.",
    Category.NODE_UNHEALTHY: "The host of the storage is not available.",
    Category.IMAGE_NOT_FOUND: "The image is not available.",
    Category.IMAGE_CORRUPT: "The image is damaged.",
    Category.LOCK: "The storage was busy.",
    Category.STORAGE_FULL: "The storage is full.",
    Category.TASK_TIMEOUT: "It was not done in time.",
    Category.PROTECTED: "It is protected from removal.",
}
SOMETHING = "It failed on the storage."


def event(action: str, category: str) -> Event:
    """Return what failed."""
    if action == "create-volume" and category == Category.NO_VALID_HOST:
        return SCHEDULE
    return EVENTS.get(action, OTHER)
