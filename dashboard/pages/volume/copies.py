"""Snapshots and backups: the list, and what is done with each."""

from __future__ import annotations

from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import VOLUME, Call, following, rows, segment
from dashboard.page import Page
from dashboard.pages.volume.show import REFRESH_SECONDS, is_busy
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000


def index(visit: Visit) -> Answer:
    """List snapshots and backups of all volumes, also of those that are deleted."""
    query = {"limit": visit.limit, "sort": "created_at:desc"}
    snapshots, backups, volumes = visit.cloud.together(
        Call(VOLUME, "/snapshots/detail", query | {"marker": visit.query.get("marker")}),
        Call(VOLUME, "/backups/detail", query | {"marker": visit.query.get("after")}),
        Call(VOLUME, "/volumes", {"limit": _MOST}, optional=True),
    )
    every = [*snapshots["snapshots"], *backups["backups"]]
    return view(
        "volume/copies.html",
        snapshots=snapshots["snapshots"],
        backups=backups["backups"],
        names={one["id"]: one["name"] or one["id"] for one in rows(volumes, "volumes")},
        more_snapshots=visit.next_page("/volumes/copies", following(snapshots, "snapshots")),
        more_backups=_next(visit, following(backups, "backups")),
        busy=is_busy(every),
        refresh_seconds=REFRESH_SECONDS,
    )


def ask_revert(visit: Visit) -> Answer:
    """Ask whether a volume is to get its content of a snapshot back."""
    snapshot, volume = _snapshot(visit)
    return view("volume/revert.html", snapshot=snapshot, volume=volume)


def revert(visit: Visit) -> Answer:
    """Bring a volume back to its last snapshot."""
    snapshot, volume = _snapshot(visit)
    page = f"/volumes/{volume['id']}"
    body = {"revert": {"snapshot_id": snapshot["id"]}}
    said = "The volume is being reverted."
    return visit.begin(page, said, visit.cloud.post, VOLUME, f"{page}/action", body)


def ask_delete_snapshot(visit: Visit) -> Answer:
    """Ask whether a snapshot is to be deleted."""
    snapshot = visit.cloud.get(VOLUME, _path(visit, "snapshots"))["snapshot"]
    return view("volume/delete_copy.html", kind="snapshot", copy=snapshot)


def delete_snapshot(visit: Visit) -> Answer:
    """Delete a snapshot."""
    said, path = "The snapshot is being deleted.", _path(visit, "snapshots")
    return visit.begin("/volumes/copies", said, visit.cloud.delete, VOLUME, path)


def ask_delete_backup(visit: Visit) -> Answer:
    """Ask whether a backup is to be deleted."""
    backup = visit.cloud.get(VOLUME, _path(visit, "backups"))["backup"]
    return view("volume/delete_copy.html", kind="backup", copy=backup)


def delete_backup(visit: Visit) -> Answer:
    """Delete a backup."""
    said, path = "The backup is being deleted.", _path(visit, "backups")
    return visit.begin("/volumes/copies", said, visit.cloud.delete, VOLUME, path)


def ask_restore(visit: Visit) -> Answer:
    """Ask where a backup is to be restored: in a new volume, or over another one's content."""
    backup, volumes = visit.cloud.together(
        Call(VOLUME, _path(visit, "backups")),
        Call(VOLUME, "/volumes/detail", {"limit": _MOST, "status": "available"}, optional=True),
    )
    found = backup["backup"]
    targets = [
        one
        for one in rows(volumes, "volumes")
        if one["size"] >= found["size"] and one["status"] == "available"
    ]
    return view("volume/restore.html", backup=found, targets=targets)


def restore(visit: Visit) -> Answer:
    """Restore a backup."""
    asked: dict[str, Any] = {}
    if visit.field("volume"):
        asked["volume_id"] = visit.field("volume")
    elif visit.field("name"):
        asked["name"] = visit.field("name")
    said, path = "The backup is being restored.", f"{_path(visit, 'backups')}/restore"
    return visit.begin("/volumes", said, visit.cloud.post, VOLUME, path, {"restore": asked})


def _snapshot(visit: Visit) -> tuple[Any, Any]:
    """Return a snapshot and its volume."""
    snapshot = visit.cloud.get(VOLUME, _path(visit, "snapshots"))["snapshot"]
    volume = visit.cloud.get(VOLUME, f"/volumes/{segment(snapshot['volume_id'])}")["volume"]
    return snapshot, volume


def _next(visit: Visit, marker: str) -> str:
    return visit.here("/volumes/copies", after=marker) if marker else ""


def _path(visit: Visit, kind: str) -> str:
    return f"/{kind}/{segment(visit.params['copy_id'])}"


_SNAPSHOT, _BACKUP = "/volumes/snapshots/{copy_id:uuid}", "/volumes/backups/{copy_id:uuid}"
PAGES = (
    Page("/volumes/copies", index, calls=3),
    Page(f"{_SNAPSHOT}/revert", ask_revert, May.CHANGE, calls=2),
    Page(f"{_SNAPSHOT}/revert", revert, May.CHANGE, "POST", calls=3),
    Page(f"{_SNAPSHOT}/delete", ask_delete_snapshot, May.CHANGE),
    Page(f"{_SNAPSHOT}/delete", delete_snapshot, May.CHANGE, "POST"),
    Page(f"{_BACKUP}/delete", ask_delete_backup, May.CHANGE),
    Page(f"{_BACKUP}/delete", delete_backup, May.CHANGE, "POST"),
    Page(f"{_BACKUP}/restore", ask_restore, May.CHANGE, calls=2),
    Page(f"{_BACKUP}/restore", restore, May.CHANGE, "POST"),
)
