"""The forms for a new scaling group, and for servers of another profile in an existing one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import CLUSTERING, COMPUTE, IMAGE, NETWORK, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.flavors import EVERY, by_size, too_small
from dashboard.rights import May
from dashboard.visit import Visit, as_number

PATH, API = "/groups", "/clusters"
_PROFILES = "/profiles"
_SPEC = {"type": "os.nova.server", "version": "1.0"}
_NEW: Mapping[str, str] = {
    **dict.fromkeys(("name", "flavor", "image", "network", "key", "max_size"), ""),
    "desired": "2",
    "min_size": "0",
}
_OF_PROFILE = ("flavor", "image")
_CHOICES = (
    EVERY,
    Call(IMAGE, "/v2/images", {"limit": 1000, "status": "active"}),
)


def new(visit: Visit) -> Answer:
    """Show the form for a group."""
    return _form(visit, _NEW)


def create(visit: Visit) -> Answer:
    """Make a profile and a group of it; where the group is refused, no profile remains."""
    given = {name: visit.field(name) for name in _NEW}
    asked = {
        "name": given["name"],
        "desired_capacity": as_number(given["desired"]),
        "min_size": as_number(given["min_size"] or "0"),
        "max_size": as_number(given["max_size"] or "-1"),
    }
    try:
        made = _with_profile(visit, given["name"], _properties(given), asked)
    except ApiRefused as refused:
        return _form(visit, given, refused)
    visit.note(f"The group {given['name']} is being created.", "begun")
    return Redirect(f"{PATH}/{made['id']}")


def _properties(given: Mapping[str, str]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: given[name] for name in _OF_PROFILE}
    if given["network"]:
        properties["networks"] = [{"network": given["network"]}]
    if given["key"]:
        properties["key_name"] = given["key"]
    return properties


def _with_profile(
    visit: Visit, name: str, properties: Mapping[str, Any], asked: Mapping[str, Any]
) -> Any:
    """Make a group, or change that of the path, with a profile of its own. Raises ApiRefused."""
    spec = {**_SPEC, "properties": properties}
    body = {"profile": {"name": name, "spec": spec}}
    profile = visit.cloud.post(CLUSTERING, _PROFILES, body)["profile"]["id"]
    try:
        call = {"cluster": {**asked, "profile_id": profile}}
        if "cluster_id" in visit.params:
            path = cluster_path(visit)
            return visit.cloud.patch(CLUSTERING, path, call, "application/json")["cluster"]
        return visit.cloud.post(CLUSTERING, API, call)["cluster"]
    except ApiRefused:
        path = f"{_PROFILES}/{segment(profile)}"
        visit.cloud.send(Call(CLUSTERING, path, method="DELETE", optional=True))
        raise


def _form(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    flavors, images, networks, keys = visit.cloud.together(
        *_CHOICES,
        Call(NETWORK, "/v2.0/networks", optional=True),
        Call(COMPUTE, "/os-keypairs", {"limit": 1000}, optional=True),
    )
    values = {
        "given": {**_fitting(flavors["flavors"], images["images"]), **_filled(given)},
        "refused": refused,
        "flavors": flavors["flavors"],
        "images": images["images"],
        # the nodes' networks first, which lead elsewhere
        "networks": sorted(rows(networks, "networks"), key=lambda one: not one["shared"]),
        "keys": [one["keypair"]["name"] for one in rows(keys, "keypairs")],
    }
    return View("group_create.html", values, status_of(refused))


def _filled(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value or name not in _OF_PROFILE}


def _fitting(flavors: Sequence[Any], images: Sequence[Any]) -> dict[str, str]:
    """Return what is chosen at first: an image, and the smallest flavor that it fits."""
    if not images or not flavors:
        return dict.fromkeys(_OF_PROFILE, "")
    image, sizes = images[0], by_size(flavors)
    fits = (one for one in sizes if not too_small(one, image))
    return {"image": image["id"], "flavor": next(fits, sizes[-1])["id"]}


def ask_replace(visit: Visit) -> Answer:
    """Show the form for another profile: the present one's flavor and image are chosen."""
    return _replace_form(visit)


def _replace_form(visit: Visit, refused: ApiRefused | None = None) -> View:
    group, (flavors, images) = _group(visit), visit.cloud.together(*_CHOICES)
    properties = _present(visit, group)
    values = {
        "group": group,
        "refused": refused,
        "flavors": _marked(flavors["flavors"], properties.get("flavor")),
        "images": _marked(images["images"], properties.get("image")),
    }
    return View("group_replace.html", values, status_of(refused))


def _marked(found: Any, present: Any) -> list[tuple[str, str, bool]]:
    """Return ID and name of each, and whether servers are made of it now."""
    return [
        (one["id"], one["name"] or one["id"], present in (one["id"], one["name"])) for one in found
    ]


def replace(visit: Visit) -> Answer:
    """Have servers replaced by such of the present profile with another flavor or image."""
    group = _group(visit)
    chosen = {name: visit.field(name) for name in _OF_PROFILE}
    try:
        properties = {**_present(visit, group), **chosen}
        _with_profile(visit, group["name"], properties, {})
    except ApiRefused as refused:
        return _replace_form(visit, refused)
    visit.note("The servers are being replaced.", "begun")
    return Redirect(page_of(visit))


def _group(visit: Visit) -> Mapping[str, Any]:
    found: Mapping[str, Any] = visit.cloud.get(CLUSTERING, cluster_path(visit))["cluster"]
    return found


def _present(visit: Visit, group: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the group's servers are made of."""
    path = f"{_PROFILES}/{segment(group['profile_id'])}"
    spec = visit.cloud.get(CLUSTERING, path)["profile"]["spec"]
    properties: Mapping[str, Any] = spec.get("properties") or {}
    return properties


def cluster_path(visit: Visit) -> str:
    """Return the API's path of the group that a page is about."""
    return f"{API}/{segment(visit.params['cluster_id'])}"


def page_of(visit: Visit) -> str:
    """Return the path of a group's page."""
    return f"{PATH}/{visit.params['cluster_id']}"


_GROUP = PATH + "/{cluster_id:uuid}"
PAGES = (
    Page(f"{PATH}/create", new, May.CHANGE, calls=4),
    Page(f"{PATH}/create", create, May.CHANGE, "POST", calls=7),
    Page(f"{_GROUP}/replace", ask_replace, May.CHANGE, calls=4),
    Page(f"{_GROUP}/replace", replace, May.CHANGE, "POST", calls=9),
)
