"""Key pairs of the user: the list, a new or imported one, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard import shell
from dashboard.answer import Answer, Redirect, View, confirm, view
from dashboard.cloud import COMPUTE, Call, following, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/keypairs"
_API = "/os-keypairs"
#: the last microversion that makes a private key
_MAKES_KEYS = "compute 2.91"


def index(visit: Visit) -> Answer:
    """List a page of key pairs, with the form for another one."""
    return _list(visit, {"name": "", "public_key": ""})


def _list(visit: Visit, given: dict[str, str], refused: ApiRefused | None = None) -> View:
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    found = visit.cloud.get(COMPUTE, _API, **query)
    values = {
        "keypairs": [one["keypair"] for one in found["keypairs"]],
        "given": given,
        "refused": refused,
        "following": visit.next_page(PATH, following(found, "keypairs")),
    }
    return View("keypairs.html", values, status_of(refused))


def create(visit: Visit) -> Answer:
    """Import a public key; without one, make a key pair and show its private key, once."""
    given = {name: visit.field(name) for name in ("name", "public_key")}
    try:
        made = make(visit, given["name"], given["public_key"])
    except ApiRefused as refused:
        return _list(visit, given, refused)
    if "private_key" in made:
        return view("keypair_made.html", keypair=made, file=shell.file(f"{made['name']}.pem"))
    visit.note(f"The key {made['name']} is imported.")
    return Redirect(PATH)


def make(visit: Visit, name: str, public_key: str) -> Mapping[str, Any]:
    """Import a public key, or make a key pair where that is empty. Raises ApiRefused."""
    asked = {"name": name, **({"public_key": public_key} if public_key else {})}
    version = "" if public_key else _MAKES_KEYS
    call = Call(COMPUTE, _API, body={"keypair": asked}, method="POST", version=version)
    made: Mapping[str, Any] = visit.cloud.send(call)["keypair"]
    return made


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a key pair is to be deleted."""
    name = visit.query.get("name", "")
    found = visit.cloud.get(COMPUTE, _path(name))["keypair"]
    said = "No new server gets this key. Servers that have it are not changed."
    title = f"Delete the key pair {found['name']}?"
    return confirm(title, said, f"{PATH}/delete", PATH, name=found["name"])


def delete(visit: Visit) -> Answer:
    """Delete a key pair."""
    path = _path(visit.field("name"))
    return visit.change(PATH, "The key pair is deleted.", visit.cloud.delete, COMPUTE, path)


def _path(name: str) -> str:
    return f"{_API}/{segment(name or '-')}"


PAGES = (
    Page(PATH, index),
    Page(PATH, create, May.CHANGE, "POST", calls=2),
    Page(f"{PATH}/delete", ask_delete, May.CHANGE),
    Page(f"{PATH}/delete", delete, May.CHANGE, "POST"),
)
