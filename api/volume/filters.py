"""What lists can be filtered by; names are those of Cinder's resource_filters.json."""

from __future__ import annotations

from collections.abc import Mapping

from api.volume.call import Call
from common.errors import Invalid

#: resource → its filters; `name~` is for parts of names
FILTERS: Mapping[str, tuple[str, ...]] = {
    "volume": (
        *("name~", "status", "metadata", "bootable", "migration_status", "availability_zone"),
        *("group_id", "size", "created_at", "updated_at", "consumes_quota"),
    ),
    "backup": ("name~", "status", "volume_id"),
    "snapshot": (
        *("name~", "status", "volume_id", "metadata", "availability_zone", "consumes_quota"),
    ),
    "attachment": ("volume_id", "status", "instance_id", "attach_status"),
    "message": ("resource_uuid", "resource_type", "event_id", "request_id", "message_level"),
    "pool": ("name", "volume_type"),
    "volume_type": ("is_public", "extra_specs"),
}
_REFUSED_SINCE, _PARTS_SINCE = 31, 34
_OF_PAGES = {"limit", "marker", "offset", "sort", "sort_key", "sort_dir", "with_count"}
#: cinderclient sends it for everybody
_IGNORED = {"all_tenants"}
#: list that only administrators may read → its query parameters that are no filters
_OF_ADMINISTRATORS = {"pool": {"detail"}}


def require_known(call: Call, resource: str, since: int = _REFUSED_SINCE) -> None:
    """Raise Invalid for a filter that the list hasn't; administrators may name any.

    A list that only administrators may read refuses unknown filters of theirs, too.
    """
    if call.version < since:
        return
    for name in call.query:
        if not name.isascii():
            raise Invalid("Filter keys can only contain ASCII characters.")
    if call.is_admin and resource not in _OF_ADMINISTRATORS:
        return
    known = _known(resource) | _OF_ADMINISTRATORS.get(resource, set())
    if call.version < _PARTS_SINCE:
        known = {name for name in known if not name.endswith("~")}
    unknown = [name for name in call.query if name not in known]
    if unknown:
        named = ",".join(unknown)[:255]
        raise Invalid(f"Invalid filters {named} are found in query options.")


def finds_nothing(call: Call, resource: str, *more: str) -> bool:
    """Return whether an administrator's filter names a column Cinder lacks, which matches nothing.

    ``more``: the list's filters besides FILTERS.
    """
    return call.is_admin and not call.query.keys() <= _known(resource) | {*more}


def _known(resource: str) -> set[str]:
    names = FILTERS[resource]
    return {*names, *(name.removesuffix("~") for name in names)} | _OF_PAGES | _IGNORED
