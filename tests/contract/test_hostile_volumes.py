"""Eight clients at once send what no client should: each answer is a refusal, nothing changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.compat.conftest import Site
from tests.functional.waiting import eventually

CLIENTS = 8
#: how many of the clients send each request
EACH = 2
UNKNOWN = "00000000-0000-4000-8000-000000000000"
_BOMB = "\U0001f4a3"
_TEXTS = ([], {}, 7, True, "x" * 256, "a\0b")
_NUMBERS = ([], {}, "x", "1.5", 1.5, -1, 0, 1 << 40, 10**400, "9" * 400, "\u0661", "", " 1 ")
_IDS = ([], {}, 7, "x", "a\0b", _BOMB, "../../x", "x" * 300, UNKNOWN)
_FLAGS = ([], {}, 7, "perhaps", _BOMB)
_MAPPINGS = ([], "x", 7, {"": "x"}, {"k": 1}, {"k": None}, {"k": {}}, {"x" * 256: "x"})
_MAPPINGS += ({"k": "x" * 256}, {_BOMB: "x"}, {"k\0": "x"})
_RAW = (
    *(b"", b"{", b"[]", b"null", b'"x"', b"7", b"\xff\xfe", b'{"volume": NaN}', b"{}"),
    *(b'{"volume": null}', b'{"volume": []}', b"[" * 50_000, b'{"a":' * 5_000),
)


@dataclass(frozen=True)
class Victims:
    """What the clients aim at."""

    volume: str
    """Their own project's."""
    theirs: str
    """A volume of another project."""
    snapshot: str
    """A snapshot of that."""
    server: str
    their_server: str
    image: str
    flavor: str
    network: str


@dataclass(frozen=True)
class Sent:
    """One request."""

    api: str
    method: str
    path: str
    body: bytes | None = None


@pytest.fixture
def victims(site: Site) -> Iterator[Victims]:
    member, admin = (site.cloud.connection(f"micronova-{who}") for who in ("demo", "admin"))
    made, machine = {"wait": True, "timeout": 60}, {"image": "cirros", "flavor": "m1.tiny"}
    machine["network"] = "vmbr0"
    server = member.create_server("victim", **machine, **made)
    their_server = admin.create_server("victim", **machine, **made)
    volume, theirs = (one.create_volume(1, name="victim", **made) for one in (member, admin))
    snapshot = admin.create_volume_snapshot(theirs.id, name="victim", **made)
    yield Victims(
        volume.id,
        theirs.id,
        snapshot.id,
        server.id,
        their_server.id,
        member.image.find_image("cirros").id,
        member.compute.find_flavor("m1.small").id,
        member.network.find_network("vmbr0").id,
    )
    admin.delete_volume_snapshot(snapshot.id, **made)
    for one, machine_id, volume_id in (
        (member, server.id, volume.id),
        (admin, their_server.id, theirs.id),
    ):
        one.delete_server(machine_id, **made)
        one.delete_volume(volume_id, **made)


def _json(api: str, method: str, path: str, body: Any) -> Sent:
    return Sent(api, method, path, json.dumps(body).encode())


def of_volumes(one: Victims) -> Iterator[Sent]:
    """Creates and changes of volumes and snapshots."""
    fields: dict[str, tuple[Any, ...]] = {
        "size": _NUMBERS,
        "name": _TEXTS,
        "description": _TEXTS,
        "volume_type": (*_TEXTS, "nothing"),
        "availability_zone": (*_TEXTS, "moon"),
        "metadata": _MAPPINGS,
        "multiattach": _FLAGS,
        "imageRef": (*_TEXTS, UNKNOWN),
        "snapshot_id": (*_IDS, one.snapshot),
        "source_volid": (*_IDS, one.theirs),
    }
    for field, values in fields.items():
        for value in values:
            yield _json("volume", "POST", "/volumes", {"volume": {"size": 1, field: value}})
    for value in (*_IDS, one.theirs):
        yield _json("volume", "POST", "/snapshots", {"snapshot": {"volume_id": value}})
        wanted = {"volume_uuid": value, "instance_uuid": one.server}
        yield _json("volume", "POST", "/attachments", {"attachment": wanted})
    for field, values in (("name", _TEXTS), ("description", _TEXTS), ("metadata", _MAPPINGS)):
        for value in values:
            yield _json("volume", "PUT", f"/volumes/{one.volume}", {"volume": {field: value}})
    for value in _MAPPINGS:
        yield _json("volume", "POST", f"/volumes/{one.volume}/metadata", {"metadata": value})
        yield _json("volume", "PUT", f"/volumes/{one.volume}/metadata/k", {"meta": value})


def of_actions(one: Victims) -> Iterator[Sent]:
    """Actions, on the own volume with bad values, and on another project's."""
    path = f"/volumes/{one.volume}/action"
    for value in (*_NUMBERS, 1):
        yield _json("volume", "POST", path, {"os-extend": {"new_size": value}})
    for value in _FLAGS:
        yield _json("volume", "POST", path, {"os-set_bootable": {"bootable": value}})
        yield _json("volume", "POST", path, {"os-update_readonly_flag": {"readonly": value}})
    for value in (*_IDS, one.snapshot):
        yield _json("volume", "POST", path, {"revert": {"snapshot_id": value}})
    for value in _MAPPINGS:
        if value != {"k": "x" * 256}:  # long values are allowed there
            yield _json("volume", "POST", path, {"os-set_image_metadata": {"metadata": value}})
    for name in ("os-attach", "os-detach", "os-initialize_connection", "os-force_delete"):
        for value in ([], {}, None, 7, _BOMB):
            yield _json("volume", "POST", path, {name: value})
    theirs = f"/volumes/{one.theirs}"
    for body in ({"os-extend": {"new_size": 5}}, {"os-reserve": {}}, {"os-reset_status": {}}):
        yield _json("volume", "POST", f"{theirs}/action", body)
    for path in (theirs, f"/snapshots/{one.snapshot}", f"{theirs}/metadata/k"):
        yield Sent("volume", "GET", path)
        yield Sent("volume", "DELETE", path)
    yield _json("volume", "PUT", theirs, {"volume": {"name": "mine"}})


def of_paths(one: Victims) -> Iterator[Sent]:
    """What is no ID in paths, no number in queries, and no JSON in bodies."""
    for bad in ("x", "a\0b", _BOMB, "x" * 2000, "%", "'; --", "-1", "9" * 400, UNKNOWN):
        named = quote(bad, safe="")
        for path in (f"/volumes/{named}", f"/snapshots/{named}", f"/attachments/{named}"):
            for method in ("GET", "DELETE"):
                yield Sent("volume", method, path)
        yield Sent("volume", "DELETE", f"/volumes/{one.volume}/metadata/{named}")
        attached = f"/servers/{one.server}/os-volume_attachments/{named}"
        yield Sent("compute", "GET", attached)
        yield Sent("compute", "DELETE", attached)
    for query in ("limit=-1", f"limit={'9' * 400}", "offset=x", "sort=x:y", "sort_key=%00"):
        yield Sent("volume", "GET", f"/volumes/detail?{query}")
        yield Sent("volume", "GET", f"/snapshots?{query}")
    for query in ("metadata=[[[", "marker=%00", "bootable=perhaps", f"marker={UNKNOWN}"):
        yield Sent("volume", "GET", f"/volumes?{query}")
    for raw in _RAW:
        for path in ("/volumes", f"/volumes/{one.volume}/action", "/snapshots", "/attachments"):
            yield Sent("volume", "POST", path, raw)
        yield Sent("compute", "POST", f"/servers/{one.server}/os-volume_attachments", raw)


def of_servers(one: Victims) -> Iterator[Sent]:
    """Attachments, and servers that would boot from volumes."""
    path = f"/servers/{one.server}/os-volume_attachments"
    for value in (*_IDS, one.theirs):
        yield _json("compute", "POST", path, {"volumeAttachment": {"volumeId": value}})
    for field, values in (("tag", _TEXTS), ("delete_on_termination", _FLAGS)):
        for value in values:
            wanted = {"volumeId": one.volume, field: value}
            yield _json("compute", "POST", path, {"volumeAttachment": wanted})
    theirs = f"/servers/{one.their_server}/os-volume_attachments"
    yield _json("compute", "POST", theirs, {"volumeAttachment": {"volumeId": one.volume}})
    yield Sent("compute", "GET", theirs)
    server = {"name": "never", "flavorRef": one.flavor, "networks": [{"uuid": one.network}]}
    device = {"source_type": "image", "destination_type": "volume", "boot_index": 0}
    device |= {"uuid": one.image, "volume_size": 1}
    devices: dict[str, tuple[Any, ...]] = {
        "uuid": _IDS,
        "volume_size": _NUMBERS,
        "source_type": (*_TEXTS, "moon"),
        "destination_type": (*_TEXTS, "moon"),
        "volume_type": (*_TEXTS, "nothing"),
        "delete_on_termination": _FLAGS,
        "boot_index": ([], {}, "x", 1.5),
        "tag": _TEXTS,
    }
    for field, values in devices.items():
        for value in values:
            wanted = {**server, "block_device_mapping_v2": [{**device, field: value}]}
            yield _json("compute", "POST", "/servers", {"server": wanted})
    for source, value in (("volume", one.theirs), ("snapshot", one.snapshot)):
        wanted = {**device, "source_type": source, "uuid": value}
        body = {"server": {**server, "block_device_mapping_v2": [wanted]}}
        yield _json("compute", "POST", "/servers", body)
    for value in ([], "x", 7, [7], [[]], [{}], [None]):
        body = {"server": {**server, "block_device_mapping_v2": value}}
        yield _json("compute", "POST", "/servers", body)


class Sender:
    """One client with a connection of its own."""

    def __init__(self, site: Site) -> None:
        connection = site.cloud.connection("micronova-demo")
        self._urls = {
            "volume": connection.block_storage.get_endpoint().rstrip("/"),
            "compute": connection.compute.get_endpoint().rstrip("/"),
        }
        self._session = requests.Session()
        self._session.headers.update(
            {
                "X-Auth-Token": connection.auth_token,
                "Content-Type": "application/json",
                "OpenStack-API-Version": "volume 3.71,compute 2.90",
            }
        )

    def send(self, what: Sent) -> str | None:
        """Send a request; return what is wrong with its answer."""
        url = f"{self._urls[what.api]}{what.path}"
        answer = self._session.request(what.method, url, data=what.body, timeout=60)
        if 400 <= answer.status_code < 500:
            return None
        shown = (what.body or b"")[:200]
        return (
            f"{answer.status_code}: {what.method} {what.path[:200]} {shown!r} {answer.text:.200}"
        )


def state(site: Site) -> dict[str, Any]:
    """All that could have changed, of both projects."""
    found = {}
    for who in ("micronova-demo", "micronova-admin"):
        connection = site.cloud.connection(who)
        storage = connection.block_storage
        found[who] = {
            "volumes": [one.to_dict(computed=False) for one in storage.volumes()],
            "snapshots": [one.to_dict(computed=False) for one in storage.snapshots()],
            "attachments": [one.id for one in storage.attachments()],
            "servers": [one.id for one in connection.compute.servers()],
            "limits": storage.get_limits().absolute.to_dict(computed=False),
        }
    return found


def test_hostile_requests_are_refused_and_change_nothing(site: Site, victims: Victims) -> None:
    every = [one for of in (of_volumes, of_actions, of_paths, of_servers) for one in of(victims)]
    before = state(site)

    def work(number: int) -> list[str]:
        mine = [
            one for place, one in enumerate(every) if (place + number) % CLIENTS in range(EACH)
        ]
        random.Random(number).shuffle(mine)
        sender = Sender(site)
        return [wrong for one in mine if (wrong := sender.send(one)) is not None]

    with ThreadPoolExecutor(CLIENTS) as pool:
        wrong = [text for found in pool.map(work, range(CLIENTS)) for text in found]
    assert sorted(set(wrong)) == []
    eventually(lambda: state(site) == before, 10, 0.5)
