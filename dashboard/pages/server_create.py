"""The form for a new server."""

from __future__ import annotations

import base64
from typing import Any

from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import COMPUTE, IMAGE, NETWORK, Call, rows
from dashboard.errors import ApiRefused
from dashboard.visit import Visit, as_number

_FIELDS = ("name", "flavor", "image", "network", "key", "zone", "groups", "user_data", "count")


def form(visit: Visit) -> Answer:
    """Show the form; the query may choose the image."""
    chosen = {"count": "1", "image": visit.query.get("image", "")}
    return _form(visit, dict.fromkeys(_FIELDS, "") | chosen)


def create(visit: Visit) -> Answer:
    """Ask for the server, and show it; or the form again with why it was refused."""
    given = {name: visit.field(name) for name in _FIELDS}
    given["groups"] = ",".join(visit.fields("groups"))
    try:
        made = visit.cloud.post(COMPUTE, "/servers", {"server": _asked(visit, given)})
    except ApiRefused as refused:
        return _form(visit, given, refused)
    visit.note(f"{given['name']} is being created.")
    if given["count"] not in ("", "1"):
        return Redirect("/servers")
    return Redirect(f"/servers/{made['server']['id']}")


def _asked(visit: Visit, given: dict[str, str]) -> dict[str, Any]:
    """Return the body of the API's request; the API validates it."""
    asked: dict[str, Any] = {
        "name": given["name"],
        "flavorRef": given["flavor"],
        "imageRef": given["image"],
        "networks": [{"uuid": given["network"]}] if given["network"] else "auto",
    }
    if given["key"]:
        asked["key_name"] = given["key"]
    if given["zone"]:
        asked["availability_zone"] = given["zone"]
    if visit.fields("groups"):
        asked["security_groups"] = [{"name": one} for one in visit.fields("groups")]
    if given["user_data"]:
        text = given["user_data"].replace("\r\n", "\n")
        asked["user_data"] = base64.b64encode(text.encode()).decode()
    if given["count"] not in ("", "1"):
        asked["min_count"] = asked["max_count"] = as_number(given["count"])
    return asked


def _form(visit: Visit, given: dict[str, str], refused: ApiRefused | None = None) -> View:
    flavors, images, networks, keys, zones, groups = visit.cloud.together(
        Call(COMPUTE, "/flavors/detail", {"limit": 1000}),
        Call(IMAGE, "/v2/images", {"limit": 1000, "status": "active"}),
        Call(NETWORK, "/v2.0/networks", optional=True),
        Call(COMPUTE, "/os-keypairs", {"limit": 1000}, optional=True),
        Call(COMPUTE, "/os-availability-zone", optional=True),
        Call(NETWORK, "/v2.0/security-groups", optional=True),
    )
    values = {
        "given": given,
        "refused": refused,
        "flavors": flavors["flavors"],
        "images": images["images"],
        "networks": rows(networks, "networks"),
        "keys": [one["keypair"]["name"] for one in rows(keys, "keypairs")],
        "zones": [one["zoneName"] for one in rows(zones, "availabilityZoneInfo")],
        "groups": list(dict.fromkeys(one["name"] for one in rows(groups, "security_groups"))),
    }
    return View("server_create.html", values, refused.status if refused else 200)
