"""The query string of a list, in Cinder's grammar."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from api.volume import filters
from api.volume.call import Call
from common import clock
from common.errors import Invalid
from db.reads.keyset import Page
from db.reads.volumes.block_storage import Filter as BackupFilter
from db.reads.volumes.snapshots import Filter as SnapshotFilter
from db.reads.volumes.volumes import Filter

MAX_LIMIT = 1000
_LARGEST = 2**31 - 1
_TIMES_SINCE = 60
_COUNTED_SINCE = 45
_OF_IMAGES_SINCE = 4
_QUOTA_SINCE = 65
#: whose; for administrators who ask for all projects
_PROJECTS = ("project_id", "tenant_id")
_EQUAL = {
    "name": "name",
    "display_name": "name",
    "status": "status",
    "availability_zone": "availability_zone",
    "size": "size_gib",
    "snapshot_id": "snapshot_id",
    "source_volid": "source_volume_id",
    "user_id": "user_id",
}
#: for administrators
_MORE = {"volume_type_id": "type_id"}
_EQUAL_SNAPSHOTS = {
    "name": "name",
    "display_name": "name",
    "status": "status",
    "volume_id": "volume_id",
    "user_id": "user_id",
}

_EQUAL_BACKUPS = {
    "name": "name",
    "display_name": "name",
    "status": "status",
    "volume_id": "volume_id",
}


@dataclass(frozen=True)
class Listing:
    """How one kind of record is listed."""

    listing: Callable[..., list[Any]]
    """Of `db.reads`, as is `count`."""
    count: Callable[..., int]
    sortable: Container[str]
    wanted: Callable[[Call], Any]
    """What a query asks for. Raises Invalid."""

    def answer(self, call: Call, path: str, view: Callable[[Call, Any], Any]) -> dict[str, Any]:
        """Return a page below the noun that `path` begins with.

        There are a link to the next page, and since 3.45 the count. Raises Invalid.
        """
        (limits, offset), wanted = page(call), self.wanted(call)
        found = call.read(self.listing, wanted, order(call, self.sortable), limits, offset)
        answer = shown(call, path, [view(call, one) for one in found], limits)
        if call.version >= _COUNTED_SINCE and call.query.boolean("with_count"):
            answer["count"] = call.read(self.count, wanted)
        return answer


def page(call: Call) -> tuple[Page, int]:
    """Return limit with marker, and offset. Raises Invalid."""
    limit, offset = _number(call, "limit"), _number(call, "offset") or 0
    most = MAX_LIMIT if limit is None else min(limit, MAX_LIMIT)
    return Page(limit=most, marker=call.query.last("marker")), offset


def _number(call: Call, name: str) -> int | None:
    number = call.query.number(name)
    if number is not None and number > _LARGEST:
        raise Invalid(f"Invalid input received: {name} must be an integer of at most {_LARGEST}.")
    return number


def order(call: Call, sortable: Container[str]) -> list[tuple[str, bool]]:
    """Return (name, descending) of each sort key; of a repeated one, the first. Raises Invalid."""
    found: dict[str, bool] = {}
    for key, turn in _sorts(call):
        if key not in sortable:
            raise Invalid(f"Invalid input received: Invalid sort key: {key[:255]}")
        if turn not in ("asc", "desc"):
            raise Invalid(f"Invalid input received: Invalid sort direction: {turn[:255]}")
        found.setdefault(key, turn == "desc")
    return list(found.items())


def _sorts(call: Call) -> list[tuple[str, str]]:
    """Return each sort key with its direction. Raises Invalid for both grammars at once."""
    text = call.query.last("sort")
    keys, turns = call.query.get("sort_key", []), call.query.get("sort_dir", [])
    if text is None:
        if turns and not keys:
            keys = ["created_at"]
        pairs = [(key, turns[n] if n < len(turns) else "") for n, key in enumerate(keys)]
    elif keys or turns:
        raise Invalid(
            "The 'sort_key' and 'sort_dir' parameters are deprecated and cannot be used with the "
            "'sort' parameter."
        )
    else:
        parts = (part.partition(":") for part in text.split(","))
        pairs = [(key, turn) for key, _, turn in parts]
    return [(key.strip(), turn.strip() or "desc") for key, turn in pairs]


def volumes(call: Call) -> Filter:
    """Return which volumes a list shows. Raises Invalid."""
    filters.require_known(call, "volume")
    everybody = call.is_admin and call.query.boolean("all_tenants")
    project = call.query.last("project_id") or call.query.last("tenant_id")
    equal: dict[str, Any] = _place(call)
    for name, column in (_EQUAL | (_MORE if call.is_admin else {})).items():
        value = call.query.last(name)
        if value is not None:
            equal[column] = _number(call, name) if column == "size_gib" else value
    if call.query.last("bootable") is not None:
        equal["bootable"] = call.query.boolean("bootable")
    whose = project if everybody else call.project
    part = call.query.last("name~") if call.version >= 34 else None
    return Filter(
        project_id=whose,
        equal=equal,
        name_part=part,
        metadata=mapping(call, "metadata"),
        image_metadata=_of_images(call),
        type_name=call.query.last("volume_type"),
        created=_times(call, "created_at") if call.version >= _TIMES_SINCE else (),
        updated=_times(call, "updated_at") if call.version >= _TIMES_SINCE else (),
        nothing=_asks_for_nothing(call),
    )


def _asks_for_nothing(call: Call) -> bool:
    """Return whether a filter is by an attribute that no volume has."""
    more = (*_EQUAL, *_MORE, *_PROJECTS, "host", "glance_metadata", "volume_type")
    if _wants_free(call) or filters.finds_nothing(call, "volume", *more):
        return True
    return any(call.query.last(name) for name in ("group_id", "migration_status"))


def _wants_free(call: Call) -> bool:
    """Return whether only volumes that consume no quota are requested; none exist here."""
    return call.version >= _QUOTA_SINCE and not call.query.boolean("consumes_quota", default=True)


def _place(call: Call) -> dict[str, Any]:
    """Return the columns that administrators filter by: `host`, `host@storage`, or as shown."""
    text = call.query.last("host") if call.is_admin else None
    if text is None:
        return {}
    host, _, storage = text.partition("@")
    # Shown it is host@storage#storage: nothing is where the two differ.
    backend, _, pool = storage.partition("#")
    if pool not in ("", backend):
        backend = storage
    return {"host": host} | ({"storage": backend} if backend else {})


def _of_images(call: Call) -> dict[str, str]:
    asked = call.is_admin and call.version >= _OF_IMAGES_SINCE
    return mapping(call, "glance_metadata") if asked else {}


def snapshots(call: Call) -> SnapshotFilter:
    """Return which snapshots a list shows. Raises Invalid."""
    filters.require_known(call, "snapshot")
    everybody = call.is_admin and call.query.boolean("all_tenants")
    project = call.query.last("project_id") or call.query.last("tenant_id")
    return SnapshotFilter(
        project_id=project if everybody else call.project,
        equal=equal(call, _EQUAL_SNAPSHOTS),
        name_part=call.query.last("name~") if call.version >= 34 else None,
        metadata=mapping(call, "metadata") if call.version >= 22 else {},
        availability_zone=call.query.last("availability_zone"),
        nothing=_wants_free(call)
        or filters.finds_nothing(call, "snapshot", *_EQUAL_SNAPSHOTS, *_PROJECTS),
    )


def backups(call: Call) -> BackupFilter:
    """Return which backups a list shows. Raises Invalid."""
    filters.require_known(call, "backup")
    everybody = call.is_admin and call.query.boolean("all_tenants")
    project = call.query.last("project_id") or call.query.last("tenant_id")
    return BackupFilter(
        project_id=project if everybody else call.project,
        equal=equal(call, _EQUAL_BACKUPS),
        name_part=call.query.last("name~") if call.version >= 34 else None,
        nothing=filters.finds_nothing(call, "backup", *_EQUAL_BACKUPS, *_PROJECTS),
    )


def equal(call: Call, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the value that a query asks for of each column, by the names of its filters."""
    asked = ((column, call.query.last(name)) for name, column in columns.items())
    return {column: value for column, value in asked if value is not None}


def mapping(call: Call, name: str) -> dict[str, str]:
    """Return a filter that is written as a dictionary of strings. Raises Invalid."""
    text = call.query.last(name)
    if text is None:
        return {}
    try:
        found = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        _is_text(key) and _is_text(value) for key, value in found.items()
    ):
        raise Invalid(f"Invalid input received: {name} must be a dictionary of strings.")
    return found


def _is_text(value: object) -> bool:
    """Return whether a value is a string that a database takes; escapes make others."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _times(call: Call, name: str) -> list[tuple[str, datetime.datetime]]:
    text = call.query.last(name)
    found = []
    for part in text.split(",") if text else ():
        how, colon, when = part.partition(":")
        if how not in ("gt", "gte", "lt", "lte", "eq", "neq") or not colon:
            how, when = "eq", part
        try:
            found.append((how, clock.parse(when)))
        except ValueError as error:
            raise Invalid(f"Invalid filter {name}: {part[:255]}") from error
    return found


def shown(
    call: Call, path: str, found: list[dict[str, Any]], limits: Page, noun: str = ""
) -> dict[str, Any]:
    """Return a page below its noun: what `path` begins with, unless another is given.

    If there may be more there is a link to the next page.
    """
    noun = noun or path.partition("/")[0]
    answer: dict[str, Any] = {noun: found}
    if found and len(found) == limits.limit:
        answer[f"{noun}_links"] = following(call, path, found[-1]["id"])
    return answer


def following(call: Call, path: str, last: str) -> list[dict[str, str]]:
    """Return the link to the next page."""
    pairs = [(name, one) for name, values in call.query.items() for one in values]
    kept = [pair for pair in pairs if pair[0] != "marker"]
    return [{"rel": "next", "href": f"{call.root}/{path}?{urlencode([*kept, ('marker', last)])}"}]
