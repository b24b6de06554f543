"""The form for a new server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import COMPUTE, Call, Missing
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages import flavors, keypairs
from dashboard.pages.create import quota, request, spelled, user_data
from dashboard.pages.create.fit import fit, room
from dashboard.pages.create.offers import CALLS, Offers, offers
from dashboard.pages.create.request import Given, NewKey
from dashboard.rights import May
from dashboard.story import Decided, decided
from dashboard.visit import Visit, as_number

_FIT, _PREVIEW, _TEMPLATE = "fit", "preview", "template"


@dataclass(frozen=True)
class Key:
    """A key pair that was made for the server: its private part is shown once."""

    name: str
    private: str


def form(visit: Visit) -> Answer:
    """Show the form; the query may choose the image, the flavor and the volume to boot from."""
    offered = offers(visit)
    return _form(visit, offered, _first(offered, visit.query))


def create(visit: Visit) -> Answer:
    """Ask for the server and show it; or show the form again, with what would be or why not."""
    given = request.given(visit)
    what = visit.field("do")
    if what == _TEMPLATE:
        given |= {"user_data": user_data.text_of(given["template"])}
    if what in (_FIT, _PREVIEW, _TEMPLATE):
        return _form(visit, offers(visit), given, asks=what == _FIT)
    key: Key | None = None
    try:
        key = _key(visit, given)
        if key is not None:
            given |= {"key": key.name, "key_how": "", "key_name": "", "public_key": ""}
        made = visit.cloud.post(COMPUTE, "/servers", request.body(given))
    except (ApiRefused, Invalid) as refused:
        return _form(visit, offers(visit), given, refused=refused, key=key)
    one = given["count"] in ("", "1")
    path = f"/servers/{made['server']['id']}" if one else "/servers"
    if key is not None and key.private:
        return View("create/key.html", {"key": key, "name": given["name"], "then": path})
    visit.note(f"{given['name']} is being created.", "begun")
    return Redirect(path)


def _key(visit: Visit, given: Given) -> Key | None:
    """Make or import the key pair that the form asks for; None: it asks for none."""
    new = request.new_key(given)
    if new is None:
        return None
    made = keypairs.make(visit, new.name, new.public)
    return Key(made["name"], made.get("private_key") or "")


def _first(offered: Offers, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what is chosen at first: nothing that is known to fail."""
    images = offered.images
    image = offered.image(query.get("image", "")) or next(
        (one for one in images if one.get("image_type") not in ("snapshot", "backup")),
        images[0] if images else None,
    )
    volume = query.get("volume", "")
    source = request.VOLUME if volume or not images else request.IMAGE
    empty: dict[str, Any] = dict.fromkeys(request.ONE, "")
    empty |= {name: [] for name in request.SEVERAL}
    chosen = {
        "count": "1",
        "source": source,
        "image": image["id"] if image else "",
        "boot_volume": volume,
        "boot_size": str(flavors.disk_of(image)) if image else "",
        "boot_with": "1",
        "network": offered.networks[0]["id"] if offered.networks else "",
        "key": offered.keys[0] if offered.keys else "",
        "groups": [one for one in offered.groups if one == "default"],
    }
    given = {**empty, **chosen}
    fitting = [one for one in _cards(offered, given) if not one.why_not]
    asked = offered.flavor(query.get("flavor", ""))
    smallest = fitting[0].flavor if fitting else None
    flavor = asked or smallest
    return given | {"flavor": flavor["id"] if flavor else ""}


def _cards(offered: Offers, given: Given) -> Iterator[flavors.Card]:
    """Yield the flavors, with why one can't be had."""
    image = offered.image(given["image"]) if given["source"] != request.VOLUME else None
    has_disk = given["source"] in (request.IMAGE, "")
    count, volumes = request.count(given), request.new_volumes(given)
    for one in offered.flavors:
        why_not = flavors.too_small(one, image, has_disk=has_disk)
        # what is too much for one server alone is too much whatever else is asked for
        least = quota.refusal(offered.limits, one, 1, [])
        why_not = why_not or quota.refusal(offered.limits, one, count, volumes)
        yield flavors.Card(one, why_not, is_final=bool(least))


def _form(
    visit: Visit,
    offered: Offers,
    given: Given,
    *,
    refused: ApiRefused | Invalid | None = None,
    key: Key | None = None,
    asks: bool = False,
) -> View:
    cards = list(_cards(offered, given))
    card = next((one for one in cards if one.flavor["id"] == given["flavor"]), None)
    body, wrong = _body(given)
    new = request.new_key(given)
    dry_run = visit.cloud.send(_dry_run(body, new, visit)) if asks and body else None
    decisions = list(_decisions(dry_run)) if visit.operates else []
    count, volumes = request.count(given), request.new_volumes(given)
    keys = [*offered.keys, key.name] if key and key.name not in offered.keys else offered.keys
    values = {
        "given": given,
        "refused": refused,
        "made_key": key if key and key.private else None,
        "offered": offered,
        "keys": keys,
        "images": list(offered.grouped(visit.project_id)),
        "cards": cards,
        "card": card,
        "left": list(quota.left(offered.limits, card.flavor, count, volumes)) if card else [],
        "wrong": wrong or _too_small(offered, given),
        "asks": asks,
        "templates": user_data.TEMPLATES,
        "fit": fit(decisions) if decisions else None,
        "room": room(dry_run) if dry_run and not visit.operates else None,
        "unknown": dry_run.message if isinstance(dry_run, Missing) else "",
        "is_forbidden": isinstance(dry_run, Missing) and dry_run.status == 403,
        "command": spelled.command(body, card.flavor["name"], new) if body and card else "",
        "terraform": spelled.terraform(body, card.flavor["name"], new) if body and card else "",
    }
    return View("create/form.html", values, status_of(refused))


def _too_small(offered: Offers, given: Given) -> str:
    """Return what is wrong with the size of the volume to boot from; empty: nothing."""
    image, size = offered.image(given["image"]), as_number(given["boot_size"])
    if given["source"] != request.NEW_VOLUME or image is None or not isinstance(size, int):
        return ""
    needed = flavors.disk_of(image)
    return f"The image needs a volume of {needed} GiB." if size < needed else ""


def _body(given: Given) -> tuple[dict[str, Any] | None, str]:
    """Return the request, or None and what is wrong with the form."""
    try:
        return request.body(given), ""
    except Invalid as error:
        return None, error.message


def _dry_run(body: Mapping[str, Any], new: NewKey | None, visit: Visit) -> Call:
    """Return the same request as a question where it would be placed: nothing is made.

    Those who see no hosts ask whether it would be.
    """
    server = {**body["server"], "name": body["server"]["name"] or "would-it-fit"}
    if new:
        # there is no key pair of this name yet
        server.pop("key_name", None)
    asked = {**body, "server": server}
    path = "/schedule" if visit.operates else "/schedule/fit"
    return Call(COMPUTE, path, body=asked, method="POST", optional=True)


def _decisions(answer: Any) -> Iterator[Decided]:
    yield from (decided(one) for one in (answer["schedule"]["decisions"] if answer else ()))


PAGES = (
    Page("/servers/create", form, May.CHANGE, calls=CALLS),
    Page("/servers/create", create, May.CHANGE, "POST", calls=CALLS + 2),
)
