"""The form for a new volume: an empty one, or the copy of something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.counting import counted
from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import IMAGE, VOLUME, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000
_FIELDS = ("name", "description", "size", "type", "source", "server")

#: what a volume can be made of: (in the form, title, member of the request's body, call, key)
_SOURCES = (
    (
        "image",
        "Images",
        "imageRef",
        Call(
            IMAGE,
            "/v2/images",
            {"limit": _MOST, "status": "active", "sort": "created_at:desc"},
            optional=True,
        ),
        "images",
    ),
    (
        "snapshot",
        "Snapshots",
        "snapshot_id",
        Call(VOLUME, "/snapshots/detail", {"limit": _MOST, "status": "available"}, optional=True),
        "snapshots",
    ),
    (
        "volume",
        "Volumes",
        "source_volid",
        Call(VOLUME, "/volumes/detail", {"limit": _MOST}, optional=True),
        "volumes",
    ),
    (
        "backup",
        "Backups",
        "backup_id",
        Call(VOLUME, "/backups/detail", {"limit": _MOST, "status": "available"}, optional=True),
        "backups",
    ),
)


def form(visit: Visit) -> Answer:
    """Show the form; the query may choose what the volume is made of."""
    given = {name: visit.query.get(name, "") for name in _FIELDS}
    return _form(visit, given | {"size": given["size"] or ("" if given["source"] else "1")})


def create(visit: Visit) -> Answer:
    """Ask for a volume and show it; or the form again with why it was refused."""
    given = {name: visit.field(name) for name in _FIELDS}
    try:
        made = visit.cloud.post(VOLUME, "/volumes", {"volume": _asked(visit, given)})["volume"]
    except ApiRefused as refused:
        return _form(visit, given, refused)
    visit.note("The volume is being created.", "begun")
    if given["server"]:
        return Redirect(f"/servers/{segment(given['server'])}/storage")
    return Redirect(f"/volumes/{made['id']}")


def _asked(visit: Visit, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of the API's request; the API validates it."""
    asked: dict[str, Any] = {"name": given["name"]}
    if given["description"]:
        asked["description"] = given["description"]
    if given["size"]:
        asked["size"] = visit.number("size")
    if given["type"]:
        asked["volume_type"] = given["type"]
    kind, _, uuid = given["source"].partition(":")
    return asked | {member: uuid for name, _, member, _, _ in _SOURCES if name == kind}


def _form(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    *answers, types, limits = visit.cloud.together(
        *(call for _, _, _, call, _ in _SOURCES),
        Call(VOLUME, "/types", optional=True),
        Call(VOLUME, "/limits", optional=True),
    )
    values = {
        "given": given,
        "refused": refused,
        "sources": list(_offered(answers)),
        "types": [one["name"] for one in rows(types, "volume_types")],
        "left": _left(limits["limits"]["absolute"]) if limits else "",
    }
    return View("volume/create.html", values, status_of(refused))


def _offered(answers: Sequence[Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield titles, and of each its options: values and texts."""
    for (name, title, _, _, key), answer in zip(_SOURCES, answers, strict=True):
        found = [
            (f"{name}:{one['id']}", f"{one['name'] or one['id']}{_size(one)}")
            for one in rows(answer, key)
        ]
        if found:
            yield title, found


def _size(one: Mapping[str, Any]) -> str:
    # an image says bytes, all others GiB
    return f" ({one['size']} GiB)" if "visibility" not in one else ""


def _left(limits: Mapping[str, int]) -> str:
    """Return what is left of the quota; empty: it has no limit.

    >>> _left({"maxTotalVolumeGigabytes": 9, "totalGigabytesUsed": 2})
    'Left of the quota: 7 GiB.'
    """
    parts = []
    for unit, most, used in (
        (("volume", "volumes"), "maxTotalVolumes", "totalVolumesUsed"),
        (("GiB", "GiB"), "maxTotalVolumeGigabytes", "totalGigabytesUsed"),
    ):
        if limits.get(most, -1) >= 0:
            parts.append(counted(limits[most] - limits.get(used, 0), *unit))
    return f"Left of the quota: {' and '.join(parts)}." if parts else ""


PAGES = (
    Page("/volumes/create", form, May.CHANGE, calls=6),
    Page("/volumes", create, May.CHANGE, "POST", calls=7),
)
