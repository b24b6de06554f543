"""What the form was given, and the body of the API's request."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.pages import lines
from dashboard.visit import Visit, as_number

ONE = (
    *("name", "count", "image", "source", "boot_volume", "boot_size", "volume_type", "boot_with"),
    *("flavor", "network", "key", "key_how", "key_name", "public_key", "zone", "server_group"),
    *("data", "hostname", "tags", "metadata", "user_data", "template"),
)
"""Fields with one value."""
SEVERAL = ("more", "groups", "volumes")
"""Check boxes."""

IMAGE, NEW_VOLUME, VOLUME = "image", "new", "volume"
"""What a server boots from."""
NO_NETWORK = "none"
_MAKE, _IMPORT = "make", "import"

Given = Mapping[str, Any]


@dataclass(frozen=True)
class NewKey:
    """A key pair that is made before the server."""

    name: str
    public: str
    """The public key of the user's own; empty: both keys are made."""


def given(visit: Visit) -> dict[str, Any]:
    """Return what the form was given."""
    one = {name: visit.field(name) for name in ONE}
    return {**one, **{name: visit.fields(name) for name in SEVERAL}}


def count(form: Given) -> int:
    """Return the number of servers, for quotas; 1 for anything that is no number."""
    number = as_number(form["count"])
    return number if isinstance(number, int) and number > 0 else 1


def new_volumes(form: Given) -> list[int]:
    """Return the GiB of the volumes that one server makes."""
    sizes = [as_number(one) for one in lines.words(form["data"])]
    if form["source"] == NEW_VOLUME:
        sizes.append(as_number(form["boot_size"]))
    return [one for one in sizes if isinstance(one, int)]


def new_key(form: Given) -> NewKey | None:
    """Return the key pair that the form asks to make or to import; None: neither."""
    if form["key_how"] not in (_MAKE, _IMPORT):
        return None
    return NewKey(form["key_name"], form["public_key"] if form["key_how"] == _IMPORT else "")


def body(form: Given) -> dict[str, Any]:
    """Return the request; the API validates it. Raises Invalid for metadata that aren't items."""
    asked: dict[str, Any] = {
        "name": form["name"],
        "flavorRef": form["flavor"],
        "networks": _networks(form),
        **{key: form[name] for key, name in _PLAIN.items() if form[name]},
    }
    new = new_key(form)
    key = new.name if new else form["key"]
    if key:
        asked["key_name"] = key
    if form["source"] in (IMAGE, ""):
        asked["imageRef"] = form["image"]
    devices = list(_devices(form))
    if devices:
        asked["block_device_mapping_v2"] = devices
    if form["groups"]:
        asked["security_groups"] = [{"name": one} for one in form["groups"]]
    if form["tags"]:
        asked["tags"] = lines.words(form["tags"])
    if form["metadata"]:
        asked["metadata"] = lines.pairs(form["metadata"], "An item")
    if form["user_data"]:
        text = form["user_data"].replace("\r\n", "\n")
        asked["user_data"] = base64.b64encode(text.encode()).decode()
    if form["count"] not in ("", "1"):
        asked["min_count"] = asked["max_count"] = as_number(form["count"])
    hints = {"group": form["server_group"]} if form["server_group"] else {}
    return {"server": asked, **({"os:scheduler_hints": hints} if hints else {})}


#: member of the body → field
_PLAIN: Mapping[str, str] = {
    "availability_zone": "zone",
    "hostname": "hostname",
}


def _networks(form: Given) -> Any:
    if form["network"] == NO_NETWORK:
        return "none"
    chosen = list(dict.fromkeys(filter(None, (form["network"], *form["more"]))))
    return [{"uuid": one} for one in chosen] or "auto"


def _devices(form: Given) -> Iterator[dict[str, Any]]:
    """Yield the disks; none: the root disk alone, which the image says."""
    data = list(_data(form))
    if form["source"] == NEW_VOLUME:
        made = {
            "boot_index": 0,
            "source_type": "image",
            "uuid": form["image"],
            "destination_type": "volume",
            "volume_size": as_number(form["boot_size"]),
            "delete_on_termination": bool(form["boot_with"]),
        }
        yield made | ({"volume_type": form["volume_type"]} if form["volume_type"] else {})
    elif form["source"] == VOLUME:
        yield {
            "boot_index": 0,
            "source_type": "volume",
            "uuid": form["boot_volume"],
            "destination_type": "volume",
        }
    elif data:
        yield {
            "boot_index": 0,
            "source_type": "image",
            "uuid": form["image"],
            "destination_type": "local",
            "delete_on_termination": True,
        }
    yield from data


def _data(form: Given) -> Iterator[dict[str, Any]]:
    for size in lines.words(form["data"]):
        yield {
            "boot_index": -1,
            "source_type": "blank",
            "destination_type": "volume",
            "volume_size": as_number(size),
        }
    for one in form["volumes"]:
        yield {
            "boot_index": -1,
            "source_type": "volume",
            "uuid": one,
            "destination_type": "volume",
        }
