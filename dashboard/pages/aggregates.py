"""Aggregates: groups of hosts, their metadata, and the availability zones that they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from common.resources.aggregates import ZONE
from dashboard.answer import Answer, Redirect, View, confirm, view
from dashboard.cloud import COMPUTE, Call, rows
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages import lines
from dashboard.pages.services import COMPUTE_BINARY
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/aggregates"
_API = "/os-aggregates"
#: hosts that a field proposes
_PROPOSED = 1000


def index(visit: Visit) -> Answer:
    """List aggregates and zones, with the form for another aggregate."""
    return _list(visit, {"name": "", ZONE: ""})


def _list(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    zones, found = visit.cloud.together(
        Call(COMPUTE, "/os-availability-zone/detail", optional=True), Call(COMPUTE, _API)
    )
    listed = map(_zone, rows(zones, "availabilityZoneInfo"))
    values = {
        "aggregates": sorted(found["aggregates"], key=lambda one: str(one["name"])),
        # where services run that carry no servers is no zone to choose
        "zones": [one for one in listed if one["hosts"] or not one["available"]],
        "given": given,
        "refused": refused,
    }
    return View("aggregates.html", values, status_of(refused))


def _zone(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a zone with its compute hosts."""
    hosts = given["hosts"] or {}
    computes = sorted(host for host, services in hosts.items() if COMPUTE_BINARY in services)
    return {
        "name": given["zoneName"],
        "available": given["zoneState"]["available"],
        "hosts": computes,
    }


def create(visit: Visit) -> Answer:
    """Make an aggregate, which has no hosts yet."""
    given = {name: visit.field(name) for name in ("name", ZONE)}
    asked = {"name": given["name"], ZONE: given[ZONE] or None}
    try:
        made = visit.cloud.post(COMPUTE, _API, {"aggregate": asked})["aggregate"]
    except ApiRefused as refused:
        return _list(visit, given, refused)
    visit.note(f"The aggregate {made['name']} is made: add its first host.")
    return Redirect(f"{PATH}/{made['id']}")


def show(visit: Visit) -> Answer:
    """Show an aggregate, with the forms for its hosts, metadata and zone."""
    services, found = visit.cloud.together(
        Call(COMPUTE, "/os-services", {"binary": COMPUTE_BINARY}, optional=True),
        Call(COMPUTE, _api(visit)),
    )
    aggregate = found["aggregate"]
    others = {one["host"] for one in rows(services, "services")} - set(aggregate["hosts"])
    items = _items(aggregate)
    return view(
        "aggregate.html",
        aggregate=aggregate,
        others=sorted(others)[:_PROPOSED],
        items=items,
        as_lines=lines.as_lines(items),
        hidden=sorted(name for name, value in items.items() if not lines.fits(name, value)),
    )


def _items(aggregate: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata without the zone, which has a field of its own."""
    return {name: text for name, text in aggregate["metadata"].items() if name != ZONE}


def change(visit: Visit) -> Answer:
    """Give an aggregate another name or zone."""
    asked = {name: visit.field(name) for name in ("name", ZONE) if visit.field(name)}
    said = "The aggregate is changed."
    body = {"aggregate": asked}
    return visit.change(_page(visit), said, visit.cloud.put, COMPUTE, _api(visit), body)


def add_host(visit: Visit) -> Answer:
    """Add a host."""
    host = visit.field("host")
    return _act(visit, {"add_host": {"host": host}}, f"The host {host} is added.")


def remove_host(visit: Visit) -> Answer:
    """Remove a host."""
    host = visit.field("host")
    return _act(visit, {"remove_host": {"host": host}}, f"The host {host} is removed.")


def describe(visit: Visit) -> Answer:
    """Replace all metadata but the zone, and items that no line of the form can show."""
    try:
        wanted: Mapping[str, str] = lines.pairs(visit.field("metadata"), "An item")
    except Invalid as error:
        visit.note(error.message, "failed")
        return Redirect(_page(visit))
    items = _items(visit.cloud.get(COMPUTE, _api(visit))["aggregate"])
    shown = [name for name, text in items.items() if lines.fits(name, text)]
    asked = {**dict.fromkeys(shown), **wanted}
    return _act(visit, {"set_metadata": {"metadata": asked}}, "The metadata are saved.")


def _act(visit: Visit, body: Mapping[str, Any], said: str) -> Redirect:
    path = f"{_api(visit)}/action"
    return visit.change(_page(visit), said, visit.cloud.post, COMPUTE, path, body)


def ask_delete(visit: Visit) -> Answer:
    """Ask whether an aggregate is to be deleted."""
    found = visit.cloud.get(COMPUTE, _api(visit))["aggregate"]
    said = "Its metadata are lost, and what flavors ask of its hosts. The hosts are not changed."
    title, button = f"Delete the aggregate {found['name']}?", "Delete"
    if found["hosts"]:
        said, button = "It has hosts still: remove them first.", ""
    return confirm(title, said, f"{_page(visit)}/delete", _page(visit), button)


def delete(visit: Visit) -> Answer:
    """Delete an aggregate."""
    said, send = "The aggregate is deleted.", visit.cloud.delete
    return visit.change(PATH, said, send, COMPUTE, _api(visit), back=_page(visit))


def _page(visit: Visit) -> str:
    return f"{PATH}/{visit.params['aggregate_id']}"


def _api(visit: Visit) -> str:
    return f"{_API}/{visit.params['aggregate_id']}"


_AGGREGATE = PATH + "/{aggregate_id:int}"
PAGES = (
    Page(PATH, index, May.OPERATE, calls=2),
    Page(PATH, create, May.OPERATE, "POST", calls=3),
    Page(_AGGREGATE, show, May.OPERATE, calls=2),
    Page(_AGGREGATE, change, May.OPERATE, "POST"),
    Page(f"{_AGGREGATE}/hosts", add_host, May.OPERATE, "POST"),
    Page(f"{_AGGREGATE}/hosts/remove", remove_host, May.OPERATE, "POST"),
    Page(f"{_AGGREGATE}/metadata", describe, May.OPERATE, "POST", calls=2),
    Page(f"{_AGGREGATE}/delete", ask_delete, May.OPERATE),
    Page(f"{_AGGREGATE}/delete", delete, May.OPERATE, "POST"),
)
