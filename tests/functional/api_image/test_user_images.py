"""Images that projects make, over HTTP: Glance's answers, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from api.image.app import make_app
from common import ids
from conductor.endpoints.images import ImageEndpoint
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.conductor.harness import IMAGE, World

OTHER = auth.OTHER
PATCH = "application/openstack-images-v2.1-json-patch"
MINE = "6f0e4c1e-2a0b-4a51-8f3d-0d6f1f1f0a01"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    reader = engine.reader(world.url)
    conductor: Any = ImageEndpoint(world.conductor.cloud)
    app = make_app(a_conf(), reader, auth.header_auth, conductor)
    with served(mounted(app, "/image")) as root:
        yield f"{root}/image/v2"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.MEMBER, **headers: str
) -> requests.Response:
    given = {"X-Auth-Token": token, "Accept": "application/json", **headers}
    return requests.request(method, url, json=body, headers=given, timeout=60)


def make(url: str, token: str = auth.MEMBER, **body: Any) -> dict[str, Any]:
    answer = call(f"{url}/images", "POST", body, token)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def patch(url: str, image_id: str, *steps: Any, token: str = auth.MEMBER) -> requests.Response:
    headers = {"Content-Type": PATCH}
    return call(f"{url}/images/{image_id}", "PATCH", list(steps), token, **headers)


def put(name: str, value: Any, op: str = "add") -> dict[str, Any]:
    return {"op": op, "path": f"/{name}", "value": value}


def listed(url: str, query: str = "", token: str = auth.MEMBER) -> set[str | None]:
    answer = call(f"{url}/images?{query}", token=token)
    assert answer.status_code == 200, answer.text
    return {image["name"] for image in answer.json()["images"]} - {"debian-12"}


def test_a_new_image_is_queued_and_shown_as_it_was_said(url: str) -> None:
    answer = call(
        f"{url}/images",
        "POST",
        {
            "id": MINE.upper(),
            "name": "fedora",
            "disk_format": "qcow2",
            "container_format": "bare",
            "min_disk": 3,
            "min_ram": 64,
            "tags": ["b", "a", "b"],
            "protected": True,
            "os_hidden": True,
            "owner_specified.openstack.md5": "",
            "hw:odd/name": "1",
        },
    )
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"].endswith(f"/image/v2/images/{MINE}")
    shown = answer.json()
    assert shown == call(f"{url}/images/{MINE}").json()
    times = {name: shown.pop(name) for name in ("created_at", "updated_at")}
    assert times["created_at"] == times["updated_at"]
    assert shown == {
        "id": MINE,
        "name": "fedora",
        "status": "queued",
        "visibility": "shared",
        "owner": "demo",
        "protected": True,
        "os_hidden": True,
        "tags": ["a", "b"],
        "disk_format": "qcow2",
        "container_format": "bare",
        "min_disk": 3,
        "min_ram": 64,
        "size": None,
        "virtual_size": None,
        "checksum": None,
        "os_hash_algo": None,
        "os_hash_value": None,
        "owner_specified.openstack.md5": "",
        "hw:odd/name": "1",
        "self": f"/v2/images/{MINE}",
        "file": f"/v2/images/{MINE}/file",
        "schema": "/v2/schemas/image",
    }
    bare = make(url)
    unsaid = ("name", "disk_format", "container_format")
    assert [bare[name] for name in unsaid] == [None, None, None]
    assert call(f"{url}/images/{MINE}/file").status_code == 204
    assert call(f"{url}/images/{MINE}/file", "PUT").status_code == 403


REFUSED: list[tuple[Any, int, str]] = [
    ([], 400, "schema"),
    ({"disk_format": "vhd"}, 400, "disk_format"),
    ({"container_format": "ovf"}, 400, "container_format"),
    ({"visibility": "all"}, 400, "visibility"),
    ({"name": "x" * 256}, 400, "name"),
    ({"name": 1}, 400, "name"),
    ({"min_ram": -1}, 400, "min_ram"),
    ({"min_disk": 2**31}, 400, "min_disk"),
    ({"min_disk": True}, 400, "min_disk"),
    ({"protected": "yes"}, 400, "protected"),
    ({"tags": "a"}, 400, "tags"),
    ({"tags": ["x" * 256]}, 400, "tags"),
    ({"os_distro": 1}, 400, "os_distro"),
    ({"x" * 256: "1"}, 400, "255"),
    ({"id": "mine"}, 400, "id"),
    ({"id": None}, 400, "id"),
    ({"id": ids.named("image", "debian-99")}, 409, "reserved"),
    ({"owner": None}, 400, "owner"),
    ({"owner": "other"}, 403, "add_image"),
    ({"visibility": "public"}, 403, "publicize_image"),
    ({"status": "active"}, 403, "read-only"),
    ({"locations": []}, 403, "reserved"),
    ({"os_glance_x": "1"}, 403, "reserved"),
    ({f"p{number}": "1" for number in range(129)}, 413, "Maximum: 128"),
    ({"tags": [str(number) for number in range(129)]}, 413, "Maximum: 128"),
]


def test_images_that_are_not_made(world: World, url: str) -> None:
    before = world.rows(schema.images)
    for body, status, says in REFUSED:
        answer = call(f"{url}/images", "POST", body)
        assert (answer.status_code, says in answer.text) == (status, True), (body, answer.text)
    assert world.rows(schema.images) == before


def test_an_id_is_given_once(world: World, url: str) -> None:
    make(url, id=MINE)
    for token in (auth.MEMBER, OTHER):
        answer = call(f"{url}/images", "POST", {"id": MINE}, token)
        assert (answer.status_code, "already exists" in answer.text) == (409, True)
    assert call(f"{url}/images", "POST", {}, auth.READER).status_code == 403
    assert len(world.rows(schema.images)) == 2


def test_who_sees_what(url: str) -> None:
    made = {
        name: make(url, name=name, visibility=name)["id"]
        for name in ("private", "shared", "community")
    }
    made["public"] = make(url, auth.ADMIN, name="public", visibility="public", owner="demo")["id"]
    assert listed(url) == {*made}
    assert listed(url, token=OTHER) == {"public"}
    assert listed(url, token=auth.ADMIN) == {"private", "shared", "public"}
    assert listed(url, "visibility=all", OTHER) == {"public", "community"}
    assert listed(url, "visibility=all", auth.ADMIN) == {*made}
    for name in ("private", "shared", "community", "public"):
        assert listed(url, f"visibility={name}") == {name}
    assert listed(url, "visibility=private", OTHER) == set()
    seen = {name: call(f"{url}/images/{made[name]}", token=OTHER).status_code for name in made}
    assert seen == {"private": 404, "shared": 404, "community": 200, "public": 200}
    for name, status in (("private", 404), ("shared", 404), ("community", 403), ("public", 403)):
        for answer in (
            patch(url, made[name], put("name", "x"), token=OTHER),
            call(f"{url}/images/{made[name]}", "DELETE", token=OTHER),
            call(f"{url}/images/{made[name]}/tags/x", "PUT", token=OTHER),
            call(f"{url}/images/{made[name]}/actions/deactivate", "POST", token=OTHER),
        ):
            assert answer.status_code == status, (name, answer.text)
    assert listed(url) == {*made}


def test_filters_of_a_project_s_images(url: str) -> None:
    make(url, name="one", tags=["a", 'q"'], protected=True, disk_format="raw")
    make(url, name="two", tags=["a", "b"], os_hidden=True, **{"a.b:c": "x"})
    assert listed(url) == {"one"}
    assert listed(url, "os_hidden=true") == {"two"}
    assert listed(url, "os_hidden=true&a.b:c=x&tag=a&tag=b") == {"two"}
    assert listed(url, "tag=a&tag=b") == set()
    assert listed(url, "tag=q%22&protected=true&status=queued&owner=demo") == {"one"}
    assert listed(url, "protected=false") == set()
    assert listed(url, "container_format=bare") == set()
    assert listed(url, "disk_format=raw&sort=container_format") == {"one"}


def test_deletes(world: World, url: str) -> None:
    kept = make(url, protected=True)["id"]
    answer = call(f"{url}/images/{kept}", "DELETE")
    assert (answer.status_code, "protected and cannot" in answer.text) == (403, True)
    assert call(f"{url}/images/{kept}", "DELETE", token=auth.READER).status_code == 403
    assert patch(url, kept, put("protected", False, "replace")).status_code == 200
    assert call(f"{url}/images/{kept}/members", "POST", {"member": "other"}).status_code == 200
    assert call(f"{url}/images/{kept}", "DELETE").status_code == 204
    assert call(f"{url}/images/{kept}", "DELETE").status_code == 404
    assert world.rows(schema.image_members) == []
    assert call(f"{url}/images/{IMAGE}", "DELETE", token=auth.ADMIN).status_code == 403


def test_changes(world: World, url: str) -> None:
    image = make(url, name="one", os_distro="debian", disk_format="raw")
    answer = patch(
        url,
        image["id"],
        put("name", "two", "replace"),
        put("tags", ["y", "x", "y"]),
        put("a~1b", "1"),
        put("os_distro", "fedora", "replace"),
        {"op": "remove", "path": "/a~1b"},
        put("visibility", "community", "replace"),
        put("min_ram", 5),
        put("disk_format", "qcow2"),
        put("os.c:d", "2"),
    )
    assert answer.status_code == 200, answer.text
    changed = {name: value for name, value in answer.json().items() if image.get(name) != value}
    changed.pop("updated_at", None)
    assert changed == {
        "name": "two",
        "tags": ["x", "y"],
        "os_distro": "fedora",
        "visibility": "community",
        "min_ram": 5,
        "disk_format": "qcow2",
        "os.c:d": "2",
    }
    old = {"Content-Type": "application/openstack-images-v2.0-json-patch"}
    where = f"{url}/images/{image['id']}"
    assert call(where, "PATCH", [{"remove": "/os.c:d"}], **old).status_code == 200
    before = world.rows(schema.images)
    refused: list[tuple[Any, int]] = [
        ({}, 400),
        ([1], 400),
        ([{"path": "/name"}], 400),
        ([{"op": "move", "path": "/name"}], 400),
        ([{"op": [], "path": "/name"}], 400),
        ([{"op": "add", "value": "x"}], 400),
        ([{"op": "add", "path": "/name"}], 400),
        ([put("name", 1)], 400),
        ([put("", "x")], 400),
        ([put("tags/-", "x")], 400),
        ([put("a~2", "x")], 400),
        ([{"op": "add", "path": 1, "value": "x"}], 400),
        ([put("disk_format", "ami")], 400),
        ([put("owner", "other")], 403),
        ([put("visibility", "public")], 403),
        ([put("status", "active", "replace")], 403),
        ([put("id", MINE, "replace")], 403),
        ([put("locations", [], "replace")], 403),
        ([{"op": "remove", "path": "/name"}], 403),
        ([put("name", "kept?"), put("absent", "x", "replace")], 409),
        ([{"op": "remove", "path": "/absent"}], 409),
        ([put(f"p{number}", "1") for number in range(129)], 413),
    ]
    for steps, status in refused:
        answer = call(where, "PATCH", steps, **{"Content-Type": PATCH})
        assert answer.status_code == status, (steps, answer.text)
    assert call(where, "PATCH", []).status_code == 415
    assert patch(url, image["id"], token=auth.READER).status_code == 403
    assert world.rows(schema.images) == before
    given = patch(url, image["id"], put("owner", "other"), token=auth.ADMIN)
    assert given.json()["owner"] == "other"
    assert call(where, token=OTHER).status_code == 200


def test_what_operators_say_stays(url: str) -> None:
    for name, value in (("name", "x"), ("min_ram", 1), ("os_distro", "x"), ("protected", False)):
        answer = patch(url, IMAGE, put(name, value), token=auth.ADMIN)
        assert (answer.status_code, "the operators'" in answer.text) == (403, True)
    steps = [put("visibility", "community"), put("tags", ["x"])]
    assert patch(url, IMAGE, *steps).status_code == 403
    assert patch(url, IMAGE, *steps, token=auth.ADMIN).json()["tags"] == ["x"]
    assert call(f"{url}/images").json()["images"] == []


def test_tags(url: str) -> None:
    where = f"{url}/images/{make(url)['id']}"
    for tag in ("b", "a", "a", "\u00fc x"):
        assert call(f"{where}/tags/{tag}", "PUT").status_code == 204
    assert call(f"{where}/tags/b", "DELETE").status_code == 204
    assert call(f"{where}/tags/b", "DELETE").status_code == 404
    for tag in ("x" * 256, "%00"):
        assert call(f"{where}/tags/{tag}", "PUT").status_code == 400
    assert call(f"{where}/tags/c", "PUT", token=auth.READER).status_code == 403
    assert call(where).json()["tags"] == ["a", "\u00fc x"]
    patch(url, where.rpartition("/")[2], put("tags", [str(number) for number in range(128)]))
    assert call(f"{where}/tags/c", "PUT").status_code == 413


def test_states(world: World, url: str) -> None:
    queued = make(url)["id"]
    for name in ("deactivate", "reactivate"):
        answer = call(f"{url}/images/{queued}/actions/{name}", "POST")
        assert (answer.status_code, "in status 'queued'" in answer.text) == (403, True)
    assert call(f"{url}/images/{queued}/actions/x", "POST").status_code == 404
    where = f"{url}/images/{IMAGE}"
    assert call(f"{where}/actions/deactivate", "POST").status_code == 403
    for name, status in (("deactivate", "deactivated"), ("reactivate", "active")):
        for _ in range(2):
            assert call(f"{where}/actions/{name}", "POST", None, auth.ADMIN).status_code == 204
            assert call(where).json()["status"] == status


def test_members(world: World, url: str) -> None:
    image_id = make(url, name="shared")["id"]
    where = f"{url}/images/{image_id}"
    answer = call(f"{where}/members", "POST", {"member": "other"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["member_id"], shown["image_id"], shown["status"]) == (
        "other",
        image_id,
        "pending",
    )
    assert call(f"{where}/members", "POST", {"member": "third"}).status_code == 200
    assert call(f"{where}/members", "POST", {"member": "other"}).status_code == 409
    for body, status in (([], 400), ({}, 400), ({"member": 1}, 400), ({"member": ""}, 400)):
        assert call(f"{where}/members", "POST", body).status_code == status
    assert call(where, token=OTHER).status_code == 200
    assert listed(url, token=OTHER) == set()
    assert listed(url, "member_status=pending", OTHER) == {"shared"}

    def answered(status: str, member: str = "other", token: str = OTHER) -> int:
        body = {"status": status}
        return call(f"{where}/members/{member}", "PUT", body, token).status_code

    assert answered("accepted") == 200
    assert listed(url, token=OTHER) == {"shared"}
    assert listed(url, "visibility=shared&owner=demo", OTHER) == {"shared"}
    assert answered("accepted", token=auth.MEMBER) == 403
    assert answered("accepted", "third") == 403
    assert answered("maybe") == 400
    assert answered("accepted", "absent", auth.ADMIN) == 404
    assert answered("rejected") == 200
    assert listed(url, token=OTHER) == set()
    assert listed(url, "member_status=all", OTHER) == {"shared"}
    assert call(where, token=OTHER).status_code == 200

    def members(token: str) -> list[str]:
        return [
            one["member_id"] for one in call(f"{where}/members", token=token).json()["members"]
        ]

    assert (members(auth.MEMBER), members(OTHER)) == (["other", "third"], ["other"])
    assert call(f"{where}/members/third", token=OTHER).status_code == 404
    assert call(f"{where}/members/third").json()["status"] == "pending"
    assert call(f"{where}/members", "POST", {"member": "x"}, OTHER).status_code == 403
    assert call(f"{where}/members/third", "DELETE", token=OTHER).status_code == 403
    assert patch(url, image_id, put("name", "x"), token=OTHER).status_code == 403
    patch(url, image_id, put("visibility", "private"))
    assert call(where, token=OTHER).status_code == 404
    assert call(f"{where}/members").status_code == 403
    patch(url, image_id, put("visibility", "shared"))
    assert call(f"{where}/members/other", "DELETE").status_code == 204
    assert call(f"{where}/members/other", "DELETE").status_code == 404
    assert call(where, token=OTHER).status_code == 404
