"""The Image API over HTTP."""

from __future__ import annotations

import pytest
import requests
import sqlalchemy as sa

from api.image.app import make_app
from common import ids
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, counted, served

DEBIAN = ids.named("image", "debian-12")
NEW_DEBIAN = ids.named("image", "debian-13")


def call(
    url: str, method: str = "GET", token: str = auth.READER, **headers: str
) -> requests.Response:
    given = {"X-Auth-Token": token, "Accept": "application/json", **headers}
    return requests.request(method, url, headers=given, timeout=60)


def names(url: str, query: str) -> list[str]:
    answer = call(f"{url}/v2/images?{query}")
    assert answer.status_code == 200, answer.text
    return [image["name"] for image in answer.json()["images"]]


def test_versions_need_no_token(url: str) -> None:
    for path, status in ((url, 300), (f"{url}/", 300), (f"{url}/versions", 200)):
        answer = requests.get(path, timeout=60)
        assert answer.status_code == status
        versions = answer.json()["versions"]
        assert [v["id"] for v in versions if v["status"] == "CURRENT"] == ["v2.9"]
        assert {v["links"][0]["href"] for v in versions} == {f"{url}/v2/"}


def test_everything_else_needs_a_token(url: str) -> None:
    answer = requests.get(f"{url}/v2/images", timeout=60)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"]
    assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_an_image_as_glance_shows_it(url: str) -> None:
    answer = call(f"{url}/v2/images/{DEBIAN}")
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    assert answer.json() == {
        "id": DEBIAN,
        "name": "debian-12",
        "status": "active",
        "visibility": "public",
        "protected": True,
        "owner": None,
        "os_hidden": False,
        "checksum": None,
        "os_hash_algo": None,
        "os_hash_value": None,
        "size": 400,
        "virtual_size": 2 * 1024**3,
        "disk_format": "qcow2",
        "container_format": "bare",
        "min_disk": 2,
        "min_ram": 0,
        "tags": [],
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": "2026-01-31T12:00:00Z",
        "self": f"/v2/images/{DEBIAN}",
        "file": f"/v2/images/{DEBIAN}/file",
        "schema": "/v2/schemas/image",
        "os_distro": "debian",
    }


def test_properties_never_hide_a_base_field_and_digests_are_named(url: str) -> None:
    image = call(f"{url}/v2/images/{NEW_DEBIAN}").json()
    assert (image["visibility"], image["architecture"]) == ("public", "x86_64")
    assert (image["checksum"], image["os_hash_algo"]) == (None, "sha512")
    other = call(f"{url}/v2/images/{ids.named('image', 'ubuntu, 24.04')}").json()
    assert (other["checksum"], other["os_hash_algo"]) == ("cd" * 16, None)


def test_the_list_is_newest_first_and_has_links(url: str) -> None:
    body = call(f"{url}/v2/images?limit=2&visibility=public").json()
    assert [image["name"] for image in body["images"]] == ["twin", "raw"]
    assert body["schema"] == "/v2/schemas/images"
    assert body["first"] == "/v2/images?limit=2&visibility=public"
    marker = body["images"][-1]["id"]
    assert body["next"] == f"/v2/images?limit=2&visibility=public&marker={marker}"
    assert "next" not in call(f"{url}/v2/images").json()


@pytest.mark.parametrize(
    "sort", ["", "name:asc", "size:desc,name", "disk_format,id:asc", "status"]
)
def test_pages_make_up_the_whole(url: str, sort: str) -> None:
    query = f"&sort={sort}" if sort else ""
    whole = names(url, query)
    assert len(whole) == 5
    path, seen = f"/v2/images?limit=2{query}", []
    while path:
        body = call(f"{url}{path}").json()
        seen += [image["name"] for image in body["images"]]
        path = body.get("next", "")
    assert seen == whole


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name=debian-12", ["debian-12"]),
        ("name=nothing", []),
        ("name=in:debian-12,raw", ["raw", "debian-12"]),
        ('name=in:"ubuntu, 24.04",raw', ["raw", "ubuntu, 24.04"]),
        (f"id=in:{DEBIAN},{NEW_DEBIAN}", ["debian-13", "debian-12"]),
        (f"id={DEBIAN}", ["debian-12"]),
        ("status=queued", []),
        ("disk_format=raw", ["raw"]),
        ("container_format=ovf", []),
        ("container_format=in:ovf,bare&name=raw", ["raw"]),
        ("visibility=private", []),
        ("visibility=all&name=raw", ["raw"]),
        ("owner=demo", []),
        ("protected=false", []),
        ("protected=true&name=raw", ["raw"]),
        ("os_hidden=true", []),
        ("os_hidden=False&name=raw", ["raw"]),
        ("tag=x", []),
        ("member_status=all&name=raw", ["raw"]),
        ("size_min=500&size_max=999", ["debian-13"]),
        ("min_disk=3", []),
        ("os_distro=debian", ["debian-13", "debian-12"]),
        ("os_distro=debian&architecture=x86_64", ["debian-13"]),
        ('a"b=1', []),
        ("checksum=" + "cd" * 16, ["ubuntu, 24.04"]),
        ("created_at=gt:2026-01-31T15:30:00Z", ["twin"]),
        ("created_at=lte:2026-01-31T12:00:01%2B00:00", ["debian-12"]),
        ("created_at=2026-01-31T12:00:00.123456", ["debian-12"]),
        ("created_at=2026-01-31T12:00:00Z", ["debian-12"]),
        ("created_at=eq:2026-01-31T12:00:00Z", ["debian-12"]),
        ("created_at=neq:2026-01-31T12:00:00Z&created_at=lt:2026-01-31T12:00:00Z", []),
        ("created_at=lte:2026-01-31T12:00:00Z", ["debian-12"]),
        ("created_at=gt:2026-01-31T16:00:00Z", []),
        ("created_at=gte:2026-01-31T16:00:00Z", ["twin"]),
        ("created_at=lt:2026-01-31T12:00:00Z", []),
        ("created_at=lte:9999-12-31T23:59:59Z&name=raw", ["raw"]),
        ("created_at=lt:2026-01-31T13:00:00Z&updated_at=gte:2026-01-01T00:00:00", ["debian-12"]),
        ("sort_key=name&sort_dir=asc&limit=2", ["debian-12", "debian-13"]),
        ("sort_key=size&sort_key=name&sort_dir=asc&limit=1", ["debian-12"]),
        ("limit=0", []),
    ],
)
def test_filters(url: str, query: str, expected: list[str]) -> None:
    assert names(url, query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "limit=-1",
        "marker=nothing",
        "sort=nothing",
        "sort=name:up",
        "sort=name&sort_dir=asc",
        "sort_key=name&sort_dir=asc&sort_dir=desc",
        "visibility=x",
        "member_status=x",
        "protected=x",
        "os_hidden=x",
        "name=foo:bar",
        'name=in:"open',
        "size_min=x",
        "size_min=99999999999999999999",
        "name_max=3",
        "created_at=gt:yesterday",
        "created_at=like:2026-01-31T12:00:00Z",
        "created_at=9999-12-31T23:59:59-23:59",
        "created_at=gt:9999-12-31T23:59:59-23:59",
        "updated_at=lte:0001-01-01T00:00:00%2B23:59",
        "changes-since=2026-01-31T12:00:00Z",
    ],
)
def test_wrong_queries_are_refused(url: str, query: str) -> None:
    answer = call(f"{url}/v2/images?{query}")
    assert answer.status_code == 400, answer.text
    assert answer.json()["title"] == "Bad Request"


def test_slashes_are_joined(url: str) -> None:
    assert call(f"{url}//v2//images?limit=1").json() == call(f"{url}/v2/images?limit=1").json()


def test_what_is_not_there_is_not_found(url: str) -> None:
    gone = ids.named("image", "gone")
    for path in (f"images/{gone}", "images/nothing", "metadefs/tags", "schemas/nothing"):
        answer = call(f"{url}/v2/{path}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "404 Not Found"
    assert call(f"{url}/v2/images/{gone}").json()["message"] == f"No image found with ID {gone}"


def test_errors_take_the_form_that_is_accepted(url: str) -> None:
    path = f"{url}/v2/images/%3Cb%3E"
    page = call(path, Accept="*/*")
    assert page.headers["Content-Type"] == "text/html; charset=UTF-8"
    assert "<h1>404 Not Found</h1>" in page.text
    assert "&lt;b&gt;" in page.text
    for accept in ("", "text/plain", "application/json"):
        answer = call(path, Accept=accept)
        assert answer.json()["message"] == "No image found with ID <b>"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""),
        ("PATCH", f"/{DEBIAN}"),
        ("DELETE", f"/{DEBIAN}"),
        ("GET", f"/{DEBIAN}/file"),
        ("PUT", f"/{DEBIAN}/file"),
        ("PUT", f"/{DEBIAN}/stage"),
        ("POST", f"/{DEBIAN}/import"),
        ("POST", f"/{DEBIAN}/actions/deactivate"),
        ("PUT", f"/{DEBIAN}/tags/x"),
        ("DELETE", f"/{DEBIAN}/tags/x"),
        ("GET", f"/{DEBIAN}/members"),
        ("POST", f"/{DEBIAN}/members"),
        ("GET", f"/{DEBIAN}/members/demo"),
    ],
)
def test_changes_are_forbidden_even_to_administrators(url: str, method: str, path: str) -> None:
    answer = call(f"{url}/v2/images{path}", method, auth.ADMIN)
    assert answer.status_code == 403
    assert answer.json()["title"] == "Forbidden"
    if path:
        missing = path.replace(DEBIAN, "nothing")
        assert call(f"{url}/v2/images{missing}", method, auth.ADMIN).status_code == 404


def test_other_methods_are_not_allowed(url: str) -> None:
    answer = call(f"{url}/v2/images", "PUT")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]


def test_what_else_clients_ask_for(url: str) -> None:
    assert call(f"{url}/v2/schemas/image").json()["additionalProperties"] == {"type": "string"}
    for name in ("images", "member", "members", "task", "tasks"):
        assert call(f"{url}/v2/schemas/{name}").json()["name"] == name
    assert call(f"{url}/v2/info/import").json()["import-methods"]["value"] == []
    assert call(f"{url}/v2/info/stores").status_code == 404
    assert call(f"{url}/v2/images/{DEBIAN}/tasks").json() == {"tasks": []}
    assert call(f"{url}/v2/tasks", token=auth.ADMIN).json()["tasks"] == []
    assert call(f"{url}/v2/tasks").status_code == 403
    assert "namespaces" in call(f"{url}/v2/schemas/metadefs/namespaces").json()["properties"]
    for name in ("namespaces", "resource_types"):
        assert call(f"{url}/v2/metadefs/{name}").json()[name]


@pytest.mark.parametrize("token", [auth.token("u", "demo", "nothing"), auth.SYSTEM])
def test_who_may_not_read(url: str, token: str) -> None:
    assert call(f"{url}/v2/images", token=token).status_code == 403
    assert call(f"{url}/v2/images/{DEBIAN}", token=token).status_code == 404


def test_a_page_takes_two_statements(database: sa.Engine) -> None:
    app = make_app(a_conf(), database, auth.header_auth)
    with served(app) as root, counted(database) as statements:
        call(f"{root}/v2/images?marker={DEBIAN}&sort=name,size,status&os_distro=debian")
        assert statements() == 2
        call(f"{root}/v2/images/{DEBIAN}")
        assert statements() == 3
