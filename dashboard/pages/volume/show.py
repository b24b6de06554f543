"""One volume: its facts, its servers, its snapshots and backups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, VOLUME, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.volume import actions
from dashboard.visit import Visit

_MOST = 1000
#: statuses are asked for again this often
REFRESH_SECONDS = 2
_AT_REST = ("available", "in-use", "reserved", "awaiting-transfer")


def is_busy(things: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether something is done to one of several volumes, snapshots or backups."""
    return any(
        one["status"] not in _AT_REST and not one["status"].startswith("error") for one in things
    )


def show(visit: Visit) -> Answer:
    """Show a volume, and what its status allows."""
    uuid = visit.params["volume_id"]
    path = f"/volumes/{segment(uuid)}"
    # an administrator may look at another project's
    everybody = {"all_tenants": "1"} if visit.operates else {}
    found, snapshots, backups, transfers, servers = visit.cloud.together(
        Call(VOLUME, path),
        Call(VOLUME, "/snapshots/detail", _of(uuid) | everybody, optional=True),
        Call(VOLUME, "/backups/detail", _of(uuid) | everybody, optional=True),
        Call(VOLUME, "/volume-transfers/detail", everybody, optional=True),
        Call(COMPUTE, "/servers", {"limit": _MOST} | everybody, optional=True),
    )
    volume = found["volume"]
    copies = [*rows(snapshots, "snapshots"), *rows(backups, "backups")]
    return view(
        "volume/show.html",
        volume=volume,
        names={one["id"]: one["name"] for one in rows(servers, "servers")},
        buttons=actions.buttons(volume),
        snapshots=rows(snapshots, "snapshots"),
        backups=rows(backups, "backups"),
        transfers=[one for one in rows(transfers, "transfers") if one["volume_id"] == uuid],
        busy=is_busy([volume, *copies]),
        refresh_seconds=REFRESH_SECONDS,
    )


def _of(uuid: str) -> dict[str, Any]:
    return {"volume_id": uuid, "limit": _MOST, "sort": "created_at:desc"}


PAGES = (Page("/volumes/{volume_id:uuid}", show, calls=5),)
