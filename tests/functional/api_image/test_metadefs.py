"""Metadata definitions over HTTP: what is built in, and what administrators write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack.connection
import pytest
import requests

from api.image import config as image_config
from api.image.app import make_app
from common.guest.settings import SETTINGS
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, served
from tests.functional.api_image.test_uploads import Site, a_site
from tests.functional.api_image.test_user_images import call
from web import policy

SPACES = "/metadefs/namespaces"
NEW = {"namespace": "My::Own", "visibility": "public", "display_name": "Mine", "protected": False}
TYPE = "OS::Nova::Flavor"
ENUM = {"name": "disk", "title": "Disk", "type": "string", "enum": ["ssd", "hdd"]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as made:
        yield made


def ask(
    site: Site, method: str, path: str, body: Any = None, token: str = auth.ADMIN, **headers: str
) -> tuple[int, Any]:
    sent = {"X-Auth-Token": token, "Accept": "application/json", **headers}
    answer = requests.request(method, f"{site.url}{path}", json=body, headers=sent, timeout=60)
    return answer.status_code, answer.json() if answer.content else None


def made(site: Site, **more: Any) -> str:
    status, body = ask(site, "POST", SPACES, {**NEW, **more})
    assert status == 201, body
    return f"{SPACES}/{body['namespace']}"


# --- what is built in


def test_the_catalogue_has_what_the_cloud_understands(site: Site) -> None:
    status, body = ask(site, "GET", SPACES, token=auth.READER)
    assert (status, body["first"], body["schema"]) == (
        200,
        "/v2/metadefs/namespaces",
        "/v2/schemas/metadefs/namespaces",
    )
    flavors, images = set(), set()
    for one in body["namespaces"]:
        assert (one["visibility"], one["protected"]) == ("public", True)
        for kind, found in ((TYPE, flavors), ("OS::Glance::Image", images)):
            types = {each["name"] for each in one["resource_type_associations"]}
            path = f"{SPACES}/{one['namespace']}?resource_type={kind}"
            shown = ask(site, "GET", path, token=auth.READER)[1]
            assert all(each["description"] for each in shown["properties"].values())
            if kind in types:
                found.update(shown["properties"])
    assert flavors == {one.spec for one in SETTINGS if one.spec}
    assert images == {one.image_property for one in SETTINGS if one.image_property}


def test_what_is_built_in_stays_as_it_is(site: Site) -> None:
    name = "OS::Compute::ProxmoxVE::Hardware"
    path = f"{SPACES}/{name}"
    for method, below, body in (
        ("DELETE", "", None),
        ("PUT", "", {"namespace": name}),
        ("POST", "/properties", ENUM),
        ("DELETE", "/properties", None),
        ("DELETE", "/properties/cpu_cores", None),
        ("POST", "/tags/x", None),
        ("POST", "/tags", {"tags": []}),
        ("POST", "/resource_types", {"name": "x"}),
        ("DELETE", f"/resource_types/{TYPE}", None),
    ):
        assert ask(site, method, f"{path}{below}", body)[0] == 403, (method, below)
    assert ask(site, "POST", SPACES, {"namespace": name})[0] == 409
    mine = made(site)
    assert ask(site, "PUT", mine, {"namespace": name})[0] == 409
    assert "cpu_cores" in ask(site, "GET", path)[1]["properties"]


# --- what administrators write


def test_a_namespace_is_made_changed_and_deleted(site: Site) -> None:
    assert [
        one["name"] for one in ask(site, "GET", "/metadefs/resource_types")[1]["resource_types"]
    ]
    whole = {
        "resource_type_associations": [{"name": TYPE, "prefix": "my:"}],
        "properties": {"disk": {"title": "Disk", "type": "string"}},
        "objects": [
            {
                "name": "thing",
                "required": ["a"],
                "properties": {"a": {"title": "A", "type": "integer", "minimum": 1}},
            }
        ],
        "tags": [{"name": "one"}, {"name": "two"}],
    }
    path = made(site, protected=True, **whole)
    assert ask(site, "POST", SPACES, NEW)[0] == 409
    shown = ask(site, "GET", path, token=auth.READER)[1]
    assert shown["owner"] == "admin" or shown["owner"]
    assert (shown["self"], shown["tags"]) == (f"/v2{path}", whole["tags"])
    assert shown["properties"] == whole["properties"]
    assert shown["objects"][0]["properties"]["a"]["minimum"] == 1
    prefixed = ask(site, "GET", f"{path}?resource_type={TYPE}")[1]
    assert set(prefixed["properties"]) == {"my:disk"}
    assert prefixed["objects"][0]["required"] == ["my:a"]
    found = f"{path}/properties/my:disk?resource_type={TYPE}"
    assert ask(site, "GET", found)[1]["name"] == "disk"
    assert ask(site, "GET", f"{path}/properties/disk?resource_type={TYPE}")[0] == 404
    assert ask(site, "DELETE", path)[0] == 403
    assert ask(site, "DELETE", f"{path}/tags/one")[0] == 403
    status, now = ask(site, "PUT", path, {"namespace": "My::Own", "description": "it"})
    assert (status, now["visibility"], now["protected"]) == (200, "private", False)
    assert "display_name" not in now
    assert ask(site, "PUT", path, {"namespace": "Other"})[0] == 200
    assert ask(site, "GET", path)[0] == 404
    assert ask(site, "DELETE", f"{SPACES}/Other")[0] == 204
    assert ask(site, "DELETE", f"{SPACES}/Other")[0] == 404


def test_objects_properties_tags_and_types(site: Site) -> None:
    path = made(site)
    objects, properties = f"{path}/objects", f"{path}/properties"
    assert ask(site, "POST", objects, {"name": "one"})[0] == 201
    assert ask(site, "POST", objects, {"name": "one"})[0] == 409
    status, body = ask(site, "PUT", f"{objects}/one", {"name": "two", "description": "d"})
    assert (status, body["name"], body["description"]) == (200, "two", "d")
    assert [one["name"] for one in ask(site, "GET", objects)[1]["objects"]] == ["two"]
    assert ask(site, "GET", f"{objects}/one")[0] == 404
    assert ask(site, "PUT", f"{objects}/one", {"name": "three"})[0] == 404
    assert ask(site, "DELETE", f"{objects}/two")[0] == 204
    assert ask(site, "POST", properties, ENUM)[1]["enum"] == ["ssd", "hdd"]
    assert ask(site, "PUT", f"{properties}/disk", {**ENUM, "title": "New"})[1]["title"] == "New"
    listed = ask(site, "GET", properties)[1]["properties"]
    assert (list(listed), listed["disk"]["title"]) == (["disk"], "New")
    assert ask(site, "DELETE", properties)[0] == 204
    assert ask(site, "GET", properties)[1] == {"properties": {}}
    assert ask(site, "POST", f"{path}/resource_types", {"name": "My::Type"})[0] == 201
    assert ask(site, "POST", f"{path}/resource_types", {"name": "My::Type"})[0] == 409
    every = ask(site, "GET", "/metadefs/resource_types")[1]["resource_types"]
    assert "My::Type" in {one["name"] for one in every}
    assert ask(site, "GET", f"{path}/resource_types")[1]["resource_type_associations"]
    assert ask(site, "DELETE", f"{path}/resource_types/My::Type")[0] == 204
    assert ask(site, "DELETE", f"{path}/resource_types/My::Type")[0] == 404


def test_tags_replace_others_unless_they_are_added(site: Site) -> None:
    path = f"{made(site)}/tags"
    three = {"tags": [{"name": name} for name in ("a", "b", "c")]}
    assert ask(site, "POST", path, three) == (201, three)
    assert ask(site, "POST", f"{path}/B")[0] == 409
    assert ask(site, "POST", f"{path}/d")[0] == 201
    assert ask(site, "PUT", f"{path}/d", {"name": "e"})[1]["name"] == "e"
    assert ask(site, "PUT", f"{path}/e", {"name": "a"})[0] == 409
    one = {"tags": [{"name": "f"}]}
    assert ask(site, "POST", path, one, **{"X-Openstack-Append": "True"})[0] == 201
    names = [each["name"] for each in ask(site, "GET", path)[1]["tags"]]
    assert names == ["a", "b", "c", "e", "f"]
    page = ask(site, "GET", f"{path}?limit=2&marker=b")[1]["tags"]
    assert [each["name"] for each in page] == ["c", "e"]
    assert ask(site, "POST", path, one)[0] == 201
    assert ask(site, "GET", path)[1] == one
    assert ask(site, "DELETE", path)[0] == 204
    assert ask(site, "GET", path)[1] == {"tags": []}


def test_who_may_see_and_write(site: Site) -> None:
    path = made(site, visibility="private", owner="demo")
    assert ask(site, "GET", path, token=auth.READER)[0] == 200
    assert ask(site, "GET", path, token=auth.OTHER)[0] == 404
    names = [
        one["namespace"] for one in ask(site, "GET", SPACES, token=auth.OTHER)[1]["namespaces"]
    ]
    assert "My::Own" not in names
    for method, where, body in (
        ("POST", SPACES, {"namespace": "x"}),
        ("PUT", path, {"namespace": "My::Own"}),
        ("DELETE", path, None),
        ("POST", f"{path}/properties", ENUM),
        ("POST", f"{path}/objects", {"name": "x"}),
        ("POST", f"{path}/tags/x", None),
        ("POST", f"{path}/resource_types", {"name": "x"}),
    ):
        assert ask(site, method, where, body, auth.MEMBER)[0] == 403, (method, where)
        if where != SPACES:
            assert ask(site, method, where, body, auth.OTHER)[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ([], 400),
        ({"namespace": ""}, 400),
        ({"namespace": "x" * 81}, 400),
        ({"namespace": 5}, 400),
        ({"namespace": "x", "visibility": "shared"}, 400),
        ({"namespace": "x", "protected": "True"}, 400),
        ({"namespace": "x", "more": 1}, 400),
        ({"namespace": "x", "created_at": "2020"}, 403),
        ({"namespace": "x", "self": "/"}, 403),
        ({"namespace": "x", "properties": {"a": {"title": "A"}}}, 400),
        ({"namespace": "x", "properties": {"a": {"title": "A", "type": "float"}}}, 400),
        ({"namespace": "x", "properties": {"a" * 81: {"title": "A", "type": "string"}}}, 400),
        (
            {
                "namespace": "x",
                "properties": {"a": {"title": "A", "type": "string", "pattern": "["}},
            },
            400,
        ),
        ({"namespace": "x", "objects": [{}]}, 400),
        ({"namespace": "x", "tags": [{"name": "a"}, {"name": "A"}]}, 409),
    ],
)
def test_malformed_namespaces_leave_nothing(site: Site, body: Any, status: int) -> None:
    before = ask(site, "GET", SPACES)[1]
    assert ask(site, "POST", SPACES, body)[0] == status
    assert ask(site, "GET", SPACES)[1] == before


def test_lists_have_pages_filters_and_an_order(site: Site) -> None:
    for number in range(3):
        made(site, namespace=f"n{number}", visibility="private")
    path = f"{SPACES}?limit=2&visibility=private&sort_key=namespace&sort_dir=asc"
    first = ask(site, "GET", path)[1]
    assert [one["namespace"] for one in first["namespaces"]] == ["n0", "n1"]
    assert first["next"].startswith("/v2/metadefs/namespaces?limit=2&visibility=private")
    second = ask(site, "GET", first["next"].removeprefix("/v2"))[1]
    assert ([one["namespace"] for one in second["namespaces"]], "next" in second) == (
        ["n2"],
        False,
    )
    only = ask(site, "GET", f"{SPACES}?resource_types={TYPE}")[1]["namespaces"]
    assert {one["owner"] for one in only} == {"micronova"}
    for wrong in ("limit=x", "limit=-1", "visibility=x", "sort_dir=up", "sort_key=x"):
        assert ask(site, "GET", f"{SPACES}?{wrong}")[0] == 400
    assert len(ask(site, "GET", f"{SPACES}?limit={'9' * 5000}")[1]["namespaces"]) == 7
    assert ask(site, "GET", f"{SPACES}?marker=nothing")[0] == 404
    for name in ("..", "%00", "x" * 300, "%ff"):
        assert ask(site, "GET", f"{SPACES}/{name}/properties")[0] in {400, 404}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("namespace", "namespace"),
        ("namespaces", "namespaces"),
        ("resource_type", "resource_type_association"),
        ("resource_types", "resource_type_associations"),
        ("object", "object"),
        ("objects", "objects"),
        ("property", "property"),
        ("properties", "properties"),
        ("tag", "tag"),
        ("tags", "tags"),
    ],
)
def test_schemas(site: Site, path: str, name: str) -> None:
    assert call(f"{site.url}/schemas/metadefs/{path}", token=auth.READER).json()["name"] == name


@pytest.mark.filterwarnings("ignore")
def test_openstacksdk_reads_and_writes_them(site: Site) -> None:
    root = site.url.removesuffix("/v2")
    cloud = openstack.connection.Connection(
        auth_type="admin_token",
        auth={"endpoint": root, "token": auth.ADMIN},
        image_endpoint_override=root,
        region_name="RegionOne",
    )
    image = cloud.image
    assert len(list(image.metadef_namespaces())) == 4
    mine = image.create_metadef_namespace(namespace="Sdk", visibility="public")
    image.create_metadef_object(mine, name="thing")
    assert [one.name for one in image.metadef_objects(mine)] == ["thing"]
    image.create_metadef_property(mine, name="disk", type="string", title="Disk")
    assert [one.name for one in image.metadef_properties(mine)] == ["disk"]
    image.create_metadef_resource_type_association(mine, name=TYPE)
    assert [one.name for one in image.metadef_resource_type_associations(mine)] == [TYPE]
    assert TYPE in [one.name for one in image.metadef_resource_types()]
    image.delete_metadef_resource_type_association(TYPE, mine)
    image.update_metadef_namespace(mine, description="it")
    assert image.get_metadef_namespace("Sdk").description == "it"
    image.delete_metadef_namespace(mine)
    assert len(list(image.metadef_namespaces())) == 4
    cloud.close()


def test_a_list_leaves_out_what_the_policy_hides(tmp_path: Path) -> None:
    """As in Glance, which asks for the list and for each that is in it."""
    rules = tmp_path / "policy.yaml"
    rules.write_text('"get_metadef_resource_type": "!"\n"get_metadef_properties": "!"\n')
    conf = a_conf()
    image_config.register(conf)
    policy.register(conf)
    conf.set_override("policy_file", str(rules), "oslo_policy")
    nothing: Any = None
    with served(make_app(conf, nothing, auth.header_auth)) as root:
        spaces = f"{root}/v2/metadefs/namespaces/OS::Compute::ProxmoxVE::Boot"
        hidden = call(f"{spaces}/resource_types")
        assert hidden.json() == {"resource_type_associations": []}
        assert call(f"{spaces}/properties").status_code == 403
