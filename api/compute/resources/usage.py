"""`/os-simple-tenant-usage`: hours of servers, by project."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import usage as schemas
from api.compute.views import usage as views
from common import clock
from common.errors import Invalid
from db.reads.keyset import MarkerNotFound
from db.reads.servers import usage
from db.reads.servers.usage import UsedServer

PATH = "os-simple-tenant-usage"
_PAGES_SINCE = 40
_FORMATS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f")


def _the_project(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Return the policy's target: the project that the path names."""
    return {"project_id": params["project_id"], "user_id": call.ctxt.user_id}


class SimpleTenantUsage:
    """The usage of projects; in pages of servers since 2.40."""

    @operation("os-simple-tenant-usage:list", query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List the usage of all projects, each server with `detailed=1`."""
        period = _period(call)
        found = _servers(call, period, None)
        detailed = (_first(call, "detailed") or "0") == "1"
        answer: dict[str, Any] = {
            "tenant_usages": views.by_project(found, period, detailed=detailed)
        }
        return answer | _links(call, found, "tenant_usages_links", PATH)

    @operation("os-simple-tenant-usage:show", query=schemas.SHOW, on=_the_project)
    def show(self, call: Call, project_id: str) -> Any:
        """Show the usage of a project, with each server; empty where it has none."""
        period = _period(call)
        found = _servers(call, period, project_id)
        usages = views.by_project(found, period, detailed=True)
        answer: dict[str, Any] = {"tenant_usage": usages[0] if usages else {}}
        return answer | _links(call, found, "tenant_usage_links", f"{PATH}/{project_id}")


def _servers(call: Call, period: views.Period, project_id: str | None) -> Sequence[UsedServer]:
    limit, marker = call.max_limit, None
    if call.version >= _PAGES_SINCE:
        limit, marker = call.query.page(call.max_limit)
    try:
        found: Sequence[UsedServer] = call.read(
            usage.in_window, *period, project_id, limit=limit, marker=marker
        )
    except MarkerNotFound as error:
        raise Invalid(f"Marker {marker} could not be found.") from error
    return found


def _links(call: Call, found: Sequence[UsedServer], name: str, path: str) -> dict[str, Any]:
    if call.version < _PAGES_SINCE or not found:
        return {}
    limit, _ = call.query.page(call.max_limit)
    if len(found) < limit:
        return {}
    return {name: call.links.after(path, call.query, found[-1].uuid)}


def _period(call: Call) -> views.Period:
    """Return the period asked for, which ends now at the latest. Raises Invalid."""
    now = clock.utcnow()
    begin = _moment(_first(call, "start"), now)
    # Where neither is given Nova's period is empty, and no error.
    end = _moment(_first(call, "end"), now + datetime.timedelta(microseconds=1))
    if begin >= end:
        raise Invalid("Invalid start time. The start time cannot occur after the end time.")
    return begin, min(end, now)


def _first(call: Call, name: str) -> str | None:
    """Return the first value of a parameter that has one."""
    return next(filter(None, call.query.get(name, [])), None)


def _moment(text: str | None, now: datetime.datetime) -> datetime.datetime:
    if text is None:
        return now
    for form in _FORMATS:
        try:
            return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.UTC)
        except ValueError:
            continue
    raise Invalid("Invalid datetime string: Datetime is in invalid format")
