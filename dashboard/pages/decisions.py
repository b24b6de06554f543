"""Decisions of the scheduler: hosts by filter with the numbers, scores; and what if."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from common.digits import is_digits
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, IMAGE, NETWORK, Call, Missing, rows, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.story import Decided, decided
from dashboard.visit import Visit

_FIELDS = ("flavor", "image", "network", "zone", "host", "group", "hints", "without", "count")
_NO_NETWORK = "none"


def show(visit: Visit) -> Answer:
    """Show every decision of a request or a server, the newest first."""
    asked = visit.query.get("what", "").strip()[:255]
    answer: Any = Missing("")
    if asked:
        path = f"/explanations/{segment(asked)}"
        answer = visit.cloud.send(Call(COMPUTE, path, optional=True))
    found = answer["explanation"]["operations"] if answer else []
    operations = [
        (one, [decided(decision) for decision in one["decisions"]])
        for one in reversed(found)
        if one.get("decisions")
    ]
    missing = answer.message if isinstance(answer, Missing) else ""
    if asked and not missing and not operations:
        missing = "Nothing was scheduled for it."
    return view("decisions.html", asked=asked, operations=operations, missing=missing)


def what_if(visit: Visit) -> Answer:
    """Show a form for a server, and where the scheduler would place it now: nothing is made."""
    given = {name: visit.query.get(name, "").strip() for name in _FIELDS}
    like = visit.query.get("like", "").strip()
    calls = [
        Call(COMPUTE, "/flavors/detail", {"limit": 1000, "is_public": "None"}),
        Call(IMAGE, "/v2/images", {"limit": 1000, "status": "active"}),
        Call(NETWORK, "/v2.0/networks", {"limit": 1000}, optional=True),
        Call(COMPUTE, "/os-availability-zone", optional=True),
        Call(COMPUTE, "/os-server-groups", {"limit": 1000}, optional=True),
    ]
    if given["flavor"]:
        calls += [_dry_run(given), _room(given)]
    elif like:
        calls.append(Call(COMPUTE, f"/servers/{segment(like)}", optional=True))
    flavors, images, networks, zones, groups, *more = visit.cloud.together(*calls)
    decisions, room = more if given["flavor"] else (None, None)
    if more and not given["flavor"] and more[0]:
        given |= _like(more[0]["server"], flavors["flavors"])
    return view(
        "what_if.html",
        given=given,
        refused=decisions.message if isinstance(decisions, Missing) else "",
        flavors=flavors["flavors"],
        images=images["images"],
        networks=rows(networks, "networks"),
        zones=[one["zoneName"] for one in rows(zones, "availabilityZoneInfo")],
        groups=rows(groups, "server_groups"),
        decisions=list(_decisions(decisions)),
        room=room["capacity"] if room else None,
    )


def _like(server: Mapping[str, Any], flavors: list[Any]) -> dict[str, str]:
    """Return the fields that ask for another such server; its flavor is known by its name."""
    named = server["flavor"]["original_name"]
    return {
        "flavor": next((str(one["id"]) for one in flavors if one["name"] == named), ""),
        "image": str((server.get("image") or {}).get("id", "")),
    }


def _decisions(answer: Any) -> Iterator[Decided]:
    for one in answer["schedule"]["decisions"] if answer else ():
        yield decided(one)


def _dry_run(given: Mapping[str, str]) -> Call:
    """Return the dry run of a create; the API validates it."""
    count = given["count"] or "1"
    number: Any = int(count) if is_digits(count) and len(count) < 6 else count
    server: dict[str, Any] = {
        "name": "what-if",
        "flavorRef": given["flavor"],
        "imageRef": given["image"],
        "min_count": number,
        "max_count": number,
        "networks": [{"uuid": given["network"]}] if given["network"] else "auto",
    }
    if given["network"] == _NO_NETWORK:
        server["networks"] = "none"
    server |= {
        name: given[key]
        for name, key in (("availability_zone", "zone"), ("host", "host"))
        if given[key]
    }
    body = {"server": server, "os:scheduler_hints": _hints(given)}
    return Call(COMPUTE, "/schedule", _without(given), body=body, method="POST", optional=True)


def _room(given: Mapping[str, str]) -> Call:
    """Return the question how many more such servers fit."""
    query = {"flavor": given["flavor"], "image": given["image"]}
    query |= {"availability_zone": given["zone"]} | _without(given)
    return Call(COMPUTE, "/capacity", query, optional=True)


def _without(given: Mapping[str, str]) -> dict[str, Any]:
    return {"without": given["without"].replace(",", " ").split()}


def _hints(given: Mapping[str, str]) -> dict[str, Any]:
    """Return hints, written as lines of KEY=VALUE; a key that is repeated has a list."""
    by_key: dict[str, list[str]] = {}
    for line in given["hints"].splitlines():
        key, _, value = line.partition("=")
        if key.strip():
            by_key.setdefault(key.strip(), []).append(value.strip())
    hints: dict[str, Any] = {
        key: values[0] if len(values) == 1 else values for key, values in by_key.items()
    }
    return hints | ({"group": given["group"]} if given["group"] else {})


PAGES = (
    Page("/explain/decisions", show),
    Page("/explain/what-if", what_if, May.OPERATE, calls=7),
)
