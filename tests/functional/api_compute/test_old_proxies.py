"""What old clients ask the compute API of others' things: images, networks, security groups."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, uuid_of
from tests.fixtures.listings import NOW, Row, a_network, an_image
from tests.fixtures.volumes import SHARED_STORAGE, a_volume, an_attachment, volume_id
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_server_security_groups import (
    FOREIGN,
    OTHER,
    RULES,
    WEB,
    a_rule,
)

pytestmark = pytest.mark.database

MINE, THEIRS, PUBLIC = (ids.named("image", name) for name in ("mine", "theirs", "debian"))
SHARED, SECRET = ids.named("network", "vmbr0"), ids.named("network", "secret")


def a_private_image(name: str, project: str, **more: Any) -> Row:
    return an_image(name, project_id=project, visibility="private", locations={}, **more)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(
        an_image("debian", properties={"os_distro": "debian"}),
        a_private_image("mine", "demo", status="queued", properties={"instance_uuid": SHARED}),
        a_private_image("theirs", "other"),
        a_network("vmbr0"),
        a_network("secret", project_id="other", discovered=False),
        *(WEB, OTHER, FOREIGN, *RULES, a_rule(FOREIGN, 9, project_id="other")),
    )


def ask(api: ComputeApi, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = api.request(method, path, body, **{"version": "2.35", **more})
    return answer.status_code, answer.json if answer.content else None


def names(api: ComputeApi, query: str = "", **more: Any) -> list[str]:
    status, body = ask(api, "GET", f"/images{query}", **more)
    assert status == 200, body
    return [one["name"] for one in body["images"]]


def test_images_are_those_that_the_project_sees(api: ComputeApi) -> None:
    assert set(names(api)) == {"mine", "debian", "debian-12"}
    assert set(names(api, token=auth.ADMIN)) == {"mine", "debian", "debian-12", "theirs"}
    assert names(api, "?status=SAVING") == []
    assert set(names(api, "?status=ACTIVE")) == {"debian", "debian-12"}
    assert names(api, "?name=mine") == ["mine"]
    assert names(api, "?property-os_distro=debian") == ["debian"]
    assert names(api, f"?server=http://here/servers/{SHARED}") == ["mine"]
    assert names(api, "?minDisk=7") == []
    path, shown = "/images/detail?limit=2", {}
    while path:
        status, body = ask(api, "GET", path)
        assert status == 200
        shown |= {one["id"]: (one["status"], one["progress"]) for one in body["images"]}
        links = body.get("images_links", [])
        path = links[0]["href"].partition("/v2.1")[2] if links else ""
    assert (len(shown), shown[PUBLIC], shown[MINE]) == (3, ("ACTIVE", 100), ("SAVING", 25))
    for query in ("limit=x", f"marker={THEIRS}", "changes-since=yesterday"):
        assert ask(api, "GET", f"/images?{query}")[0] == 400


def test_images_that_changed_since(make: MakeApi) -> None:
    """By the image API's filter of updated_at."""
    hour = datetime.timedelta(hours=1)
    api = make(an_image("old"), an_image("new", updated_at=NOW + hour))

    def found(since: datetime.datetime) -> list[str]:
        return names(api, f"?changes-since={since:%Y-%m-%dT%H:%M:%SZ}")

    assert set(found(NOW)) == {"old", "new", "debian-12"}
    assert found(NOW + hour / 2) == ["new"]
    assert found(NOW + 2 * hour) == []
    query = f"?changes-since={NOW + hour / 2:%Y-%m-%dT%H:%M:%SZ}&limit=1"
    status, body = ask(api, "GET", f"/images/detail{query}")
    assert (status, [one["name"] for one in body["images"]]) == (200, ["new"])


def test_an_image_is_shown_and_deleted_by_who_owns_it(api: ComputeApi) -> None:
    shown = ask(api, "GET", f"/images/{MINE}")[1]["image"]
    assert shown["server"]["id"] == SHARED
    assert [one["rel"] for one in shown["links"]] == ["self", "bookmark", "alternate"]
    assert ask(api, "GET", f"/images/{THEIRS}")[0] == 404
    assert ask(api, "DELETE", f"/images/{THEIRS}")[0] == 404
    status, body = ask(api, "DELETE", f"/images/{PUBLIC}")
    assert (status, body["forbidden"]["message"]) == (
        403,
        "You are not allowed to delete the image.",
    )
    assert ask(api, "DELETE", f"/images/{MINE}", version="2.36")[0] == 404
    assert ask(api, "DELETE", f"/images/{MINE}")[0] == 204
    assert ask(api, "GET", f"/images/{MINE}")[0] == 404


def test_properties_are_metadata(api: ComputeApi) -> None:
    path = f"/images/{MINE}/metadata"
    status, body = ask(api, "POST", path, {"metadata": {"a": "1", "b": "2"}}, version="2.38")
    assert (status, body["metadata"]) == (200, {"instance_uuid": SHARED, "a": "1", "b": "2"})
    assert ask(api, "PUT", f"{path}/a", {"meta": {"a": "3"}}) == (200, {"meta": {"a": "3"}})
    assert ask(api, "PUT", f"{path}/a", {"meta": {"b": "3"}})[0] == 400
    assert ask(api, "DELETE", f"{path}/b")[0] == 204
    assert ask(api, "DELETE", f"{path}/b")[0] == 404
    assert ask(api, "GET", f"{path}/a") == (200, {"meta": {"a": "3"}})
    assert ask(api, "GET", f"{path}/b")[0] == 404
    assert ask(api, "PUT", path, {"metadata": {"c": "4"}}) == (200, {"metadata": {"c": "4"}})
    assert ask(api, "GET", path) == (200, {"metadata": {"c": "4"}})
    many = {f"key{number}": "x" for number in range(129)}
    assert ask(api, "PUT", path, {"metadata": many})[0] == 403
    assert ask(api, "PUT", path, {"metadata": {"c": 4}})[0] == 400
    assert ask(api, "PUT", f"/images/{PUBLIC}/metadata", {"metadata": {}})[0] == 403
    assert ask(api, "GET", f"/images/{THEIRS}/metadata")[0] == 404
    assert ask(api, "GET", path, version="2.39")[0] == 404


ATTRIBUTES = {
    "visibility": ("public", 403),
    "owner": ("other", 403),
    "protected": ("True", 400),
    "os_hidden": ("true", 400),
    "min_disk": ("abc", 400),
    "min_ram": ("1", 400),
    "tags": ("a", 400),
    "disk_format": ("vhd", 400),
    "container_format": ("ova", 400),
    "id": ("x", 403),
    "status": ("active", 403),
    "size": ("1", 403),
    "checksum": ("1", 403),
    "direct_url": ("file:///etc/passwd", 403),
    "location": ("file:///etc/passwd", 403),
    "locations": ("[]", 403),
    "os_glance_importing_to_stores": ("x", 403),
    "deleted": ("True", 403),
}


def _in_whole(api: ComputeApi, image: str) -> Any:
    with api.writer.connect() as connection:
        query = sa.select(schema.images).where(schema.images.c.id == image)
        return connection.execute(query).one()._mapping


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_refused_as_the_image_api_refuses_them(api: ComputeApi, name: str) -> None:
    value, status = ATTRIBUTES[name]
    before, path = _in_whole(api, MINE), f"/images/{MINE}/metadata"
    for method, where, body in (
        ("POST", path, {"metadata": {"a": "1", name: value}}),
        ("PUT", path, {"metadata": {name: value}}),
        ("PUT", f"{path}/{name}", {"meta": {name: value}}),
    ):
        answered = ask(api, method, where, body, version="2.38")
        assert answered[0] == status, (method, answered)
    assert _in_whole(api, MINE) == before


def test_an_attribute_that_may_be_changed_is_no_property(api: ComputeApi) -> None:
    path = f"/images/{MINE}/metadata"
    for name, value in (("visibility", "community"), ("name", "named")):
        assert ask(api, "PUT", f"{path}/{name}", {"meta": {name: value}})[0] == 200
    assert ask(api, "GET", path)[1] == {"metadata": {"instance_uuid": SHARED}}
    now = _in_whole(api, MINE)
    assert (now["visibility"], now["name"], now["project_id"]) == ("community", "named", "demo")
    for name, value in (("visibility", "public"), ("owner", "other")):
        body = {"meta": {name: value}}
        assert ask(api, "PUT", f"{path}/{name}", body, token=auth.ADMIN)[0] == 200
    now = _in_whole(api, MINE)
    assert (now["visibility"], now["project_id"]) == ("public", "other")


def test_a_reader_changes_no_image(api: ComputeApi) -> None:
    path = f"/images/{MINE}"
    before = ask(api, "GET", path, token=auth.READER)
    assert before[0] == 200
    for method, below, body in (
        ("DELETE", "", None),
        ("POST", "/metadata", {"metadata": {"a": "1"}}),
        ("PUT", "/metadata", {"metadata": {}}),
        ("PUT", "/metadata/a", {"meta": {"a": "1"}}),
        ("DELETE", "/metadata/instance_uuid", None),
    ):
        status, refused = ask(api, method, f"{path}{below}", body, token=auth.READER)
        assert (status, list(refused)) == (403, ["forbidden"]), (method, below)
    assert api.conductor.asked == []
    assert ask(api, "GET", path, token=auth.READER) == before


def test_the_image_api_s_rules_count(make: MakeApi, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('"delete_image": "!"\n"get_image": "project_id:%(project_id)s"\n')
    api = make(a_private_image("mine", "demo"), an_image("debian"), policy_file=file)
    assert names(api) == []  # as the Image API: who may not see public images lists none
    assert ask(api, "GET", f"/images/{PUBLIC}")[0] == 404
    assert ask(api, "GET", f"/images/{MINE}")[0] == 200
    assert ask(api, "DELETE", f"/images/{MINE}")[0] == 403


def test_networks_have_an_id_and_a_label(api: ComputeApi) -> None:
    (shown,) = ask(api, "GET", "/os-networks")[1]["networks"]
    assert (shown["id"], shown["label"], shown["cidr"]) == (SHARED, "vmbr0", None)
    assert "mtu" not in shown
    everything = ask(api, "GET", "/os-networks", token=auth.ADMIN)[1]["networks"]
    assert {one["id"] for one in everything} == {SHARED, SECRET}
    assert everything[0]["mtu"] is None
    brief = {"id": SHARED, "label": "vmbr0", "cidr": "None"}
    assert ask(api, "GET", "/os-tenant-networks") == (200, {"networks": [brief]})
    assert ask(api, "GET", f"/os-tenant-networks/{SHARED}") == (200, {"network": brief})
    for path in ("/os-networks", "/os-tenant-networks"):
        assert ask(api, "GET", f"{path}/{SECRET}")[0] == 404
        assert ask(api, "GET", path, version="2.36")[0] == 404
        assert ask(api, "POST", path, {})[0] == 410
        assert ask(api, "DELETE", f"{path}/{SHARED}")[0] == 410


def test_there_are_no_floating_addresses(api: ComputeApi) -> None:
    assert ask(api, "GET", "/os-floating-ips") == (200, {"floating_ips": []})
    assert ask(api, "GET", "/os-floating-ip-pools") == (200, {"floating_ip_pools": []})
    assert ask(api, "POST", "/os-floating-ips", {"pool": "public"})[0] == 404
    assert ask(api, "GET", f"/os-floating-ips/{SHARED}")[0] == 404
    assert ask(api, "DELETE", "/os-floating-ips/x")[0] == 400


GROUPS, A_RULE = "/os-security-groups", "/os-security-group-rules"


def test_security_groups_of_the_project(api: ComputeApi) -> None:
    found = ask(api, "GET", GROUPS)[1]["security_groups"]
    assert [one["name"] for one in found] == ["db", "default", "web"]
    assert [
        one["name"] for one in ask(api, "GET", f"{GROUPS}?limit=1&offset=1")[1]["security_groups"]
    ] == ["default"]
    web = found[-1]
    assert sorted(
        (one["ip_protocol"], one["from_port"]) for one in web["rules"] if one["ip_range"]
    )
    everybodys = ask(api, "GET", f"{GROUPS}?all_tenants=1", token=auth.ADMIN)[1]
    assert FOREIGN[1]["id"] in {one["id"] for one in everybodys["security_groups"]}
    theirs = f"{GROUPS}/{FOREIGN[1]['id']}"
    assert ask(api, "GET", theirs)[0] == 404
    body = {"security_group": {"name": "new", "description": "it"}}
    assert ask(api, "PUT", theirs, body)[0] == 404
    assert ask(api, "DELETE", theirs)[0] == 404
    assert ask(api, "GET", f"{GROUPS}/web")[0] == 400
    assert ask(api, "GET", GROUPS, version="2.36")[0] == 404


def test_a_group_is_made_changed_and_deleted(api: ComputeApi) -> None:
    body = {"security_group": {"name": "new", "description": "it"}}
    status, made = ask(api, "POST", GROUPS, body)
    assert (status, made["security_group"]["rules"]) == (200, [])
    path = f"{GROUPS}/{made['security_group']['id']}"
    body["security_group"]["name"] = "newer"
    assert ask(api, "PUT", path, body)[1]["security_group"]["name"] == "newer"
    assert ask(api, "DELETE", path)[0] == 202
    assert ask(api, "GET", path)[0] == 404
    for wrong in ({}, {"security_group": {"name": "x"}}, {"security_group": {"name": 1}}):
        assert ask(api, "POST", GROUPS, wrong)[0] == 400
    assert ask(api, "POST", GROUPS, body, token=auth.READER)[0] == 403
    ask(api, "GET", GROUPS)
    default = next(
        one for one in ask(api, "GET", GROUPS)[1]["security_groups"] if one["name"] == "default"
    )
    assert ask(api, "DELETE", f"{GROUPS}/{default['id']}")[0] == 400


def a_new_rule(**values: Any) -> dict[str, Any]:
    base = {"parent_group_id": WEB[1]["id"], "ip_protocol": "tcp", "from_port": 22, "to_port": 22}
    return {"security_group_rule": {**base, **values}}


def test_a_rule_is_made_and_deleted(api: ComputeApi) -> None:
    status, made = ask(api, "POST", A_RULE, a_new_rule(cidr="192.0.2.0/24"))
    shown = made["security_group_rule"]
    assert (status, shown["ip_range"], shown["group"]) == (200, {"cidr": "192.0.2.0/24"}, {})
    assert (shown["ip_protocol"], shown["from_port"], shown["to_port"]) == ("tcp", 22, 22)
    assert ask(api, "POST", A_RULE, a_new_rule(cidr="192.0.2.0/24"))[0] == 400
    assert ask(api, "DELETE", f"{A_RULE}/{shown['id']}")[0] == 202
    assert ask(api, "DELETE", f"{A_RULE}/{shown['id']}")[0] == 404
    assert ask(api, "DELETE", f"{A_RULE}/{ids.named('rule', '9')}")[0] == 404
    ping = a_new_rule(ip_protocol="ICMP", from_port=-1, to_port=-1)
    shown = ask(api, "POST", A_RULE, ping)[1]["security_group_rule"]
    assert (shown["from_port"], shown["ip_range"]) == (-1, {"cidr": "0.0.0.0/0"})
    of_group = a_new_rule(group_id=OTHER[1]["id"], from_port=None, to_port=None)
    shown = ask(api, "POST", A_RULE, of_group)[1]["security_group_rule"]
    assert shown["group"] == {"name": "db", "tenant_id": "demo"}
    six = a_new_rule(cidr="2001:db8::/32")
    assert ask(api, "POST", A_RULE, six)[0] == 200
    kinds = sa.select(schema.security_group_rules.c.ethertype)
    with api.reader.connect() as connection:
        assert "IPv6" in connection.execute(kinds).scalars().all()


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"from_port": None}, 400),
        ({"ip_protocol": None}, 400),
        ({"ip_protocol": "gre"}, 400),
        ({"from_port": "x"}, 400),
        ({"from_port": 0}, 400),
        ({"from_port": 23}, 400),
        ({"to_port": 65536}, 400),
        ({"to_port": [1]}, 400),
        ({"to_port": 10**30}, 400),
        ({"ip_protocol": "icmp", "from_port": 256}, 400),
        ({"ip_protocol": "icmp", "from_port": -1, "to_port": 1}, 400),
        ({"cidr": "192.0.2.300/24"}, 400),
        ({"cidr": "192.0.2.0"}, 400),
        ({"cidr": "192.0.2.1/0"}, 400),
        ({"cidr": {"a": 1}}, 400),
        ({"cidr": "fe80::1%eth0/64"}, 400),
        ({"parent_group_id": "x"}, 400),
        ({"parent_group_id": SHARED}, 404),
        ({"parent_group_id": FOREIGN[1]["id"]}, 404),
        ({"group_id": FOREIGN[1]["id"]}, 404),
        ({"group_id": 5}, 400),
    ],
    ids=str,
)
def test_what_is_no_rule_changes_nothing(
    api: ComputeApi, values: dict[str, Any], status: int
) -> None:
    with api.reader.connect() as connection:
        before = connection.execute(sa.select(schema.security_group_rules)).all()
    assert ask(api, "POST", A_RULE, a_new_rule(**values))[0] == status
    with api.reader.connect() as connection:
        assert connection.execute(sa.select(schema.security_group_rules)).all() == before


def test_volumes_are_the_block_storage_api_s(api: ComputeApi) -> None:
    api.add(
        a_full_server(1),
        a_volume(1, meta={"k": "v"}, description="d"),
        a_volume(2, status="in-use", name="two"),
        an_attachment(2),
        a_volume(3, "other"),
    )
    for path in ("/os-volumes", "/os-volumes/detail"):
        status, body = ask(api, "GET", path)
        assert status == 200
        assert {one["id"] for one in body["volumes"]} == {volume_id(1), volume_id(2)}
        assert len(ask(api, "GET", f"{path}?limit=1")[1]["volumes"]) == 1
        assert len(ask(api, "GET", f"{path}?limit=0&offset=1&x=y")[1]["volumes"]) == 1
        assert ask(api, "GET", f"{path}?limit=-1")[0] == 400
        assert ask(api, "GET", path, version="2.36")[0] == 404
        assert {one["id"] for one in ask(api, "GET", path, token=auth.OTHER)[1]["volumes"]} == {
            volume_id(3)
        }
    shown = ask(api, "GET", f"/os-volumes/{volume_id(1)}")[1]["volume"]
    assert shown == {
        "id": volume_id(1),
        "status": "available",
        "size": 1,
        "availabilityZone": "az1",
        "createdAt": "2026-01-31T12:00:00.123456",
        "attachments": [{}],
        "displayName": "volume-1",
        "displayDescription": "d",
        "volumeType": None,
        "snapshotId": None,
        "metadata": {"k": "v"},
    }
    had = ask(api, "GET", f"/os-volumes/{volume_id(2)}")[1]["volume"]
    assert had["attachments"] == [
        {
            "id": volume_id(2),
            "volumeId": volume_id(2),
            "serverId": uuid_of(1),
            "device": "/dev/sdc",
        }
    ]
    assert ask(api, "GET", f"/os-volumes/{volume_id(3)}")[0] == 404
    assert ask(api, "GET", f"/os-volumes/{volume_id(3)}", token=auth.ADMIN)[0] == 200
    assert ask(api, "DELETE", f"/os-volumes/{volume_id(3)}")[0] == 404
    assert ask(api, "DELETE", f"/os-volumes/{volume_id(2)}")[0] == 400
    assert ask(api, "DELETE", f"/os-volumes/{volume_id(1)}", token=auth.READER)[0] == 403
    assert ask(api, "DELETE", f"/os-volumes/{volume_id(1)}", version="2.36")[0] == 404
    assert ask(api, "DELETE", f"/os-volumes/{volume_id(1)}")[0] == 202
    assert ask(api, "GET", f"/os-volumes/{volume_id(1)}")[1]["volume"]["status"] == "deleting"


def test_volumes_are_made_for_old_clients(api: ComputeApi) -> None:
    band = {"cluster": "c1", "low": 300_000, "high": 300_009, "next": 300_000}
    api.add(a_host("pve2", facts={"storages": [SHARED_STORAGE]}), (schema.vmid_bands, band))
    asked = {"size": "2", "display_name": "data", "metadata": {"k": "v"}}
    answer = api.request("POST", "/os-volumes", {"volume": asked}, version="2.35")
    assert answer.status_code == 200
    made = answer.json["volume"]
    assert (made["size"], made["displayName"], made["metadata"]) == (2, "data", {"k": "v"})
    assert answer.headers["location"].endswith(f"/v2.1/os-volumes/{made['id']}")
    assert ask(api, "GET", f"/os-volumes/{made['id']}")[1]["volume"] == made
    refused: tuple[tuple[dict[str, Any], int], ...] = (
        ({}, 400),
        ({"size": 0}, 400),
        ({"size": "0"}, 400),
        ({"size": 1.5}, 400),
        ({"size": 1, "x": 1}, 400),
        ({"size": 1, "metadata": {"k": 1}}, 400),
        ({"size": 1, "display_name": None}, 400),
        ({"size": 1, "display_name": "x" * 256}, 400),
        ({"size": 1, "snapshot_id": "x"}, 404),
        ({"size": 1, "volume_type": "moon"}, 404),
        ({"size": 2000}, 403),
    )
    for body, status in refused:
        assert ask(api, "POST", "/os-volumes", {"volume": body})[0] == status, body
    small = {"volume": {"size": 1}}
    assert ask(api, "POST", "/os-volumes", small, token=auth.READER)[0] == 403
    assert ask(api, "POST", "/os-volumes", small, version="2.36")[0] == 404
    assert len(ask(api, "GET", "/os-volumes")[1]["volumes"]) == 1


def test_snapshots_for_old_clients(api: ComputeApi) -> None:
    api.add(a_volume(1, volid="data:vm-1-disk-0", vmid=1, snapshot_way="online"), a_volume(2))
    for path in ("/os-snapshots", "/os-snapshots/detail"):
        assert ask(api, "GET", path) == (200, {"snapshots": []})
        assert ask(api, "GET", f"{path}?limit=x")[0] == 400
        assert ask(api, "GET", path, version="2.36")[0] == 404
    for method in ("GET", "DELETE"):
        status, body = ask(api, method, f"/os-snapshots/{MINE}")
        assert (status, body["itemNotFound"]["message"]) == (
            404,
            f"Snapshot {MINE} could not be found.",
        )
    for asked, status in ((volume_id(9), 404), (1, 400)):
        body = {"snapshot": {"volume_id": asked, "force": True}}
        assert ask(api, "POST", "/os-snapshots", body)[0] == status


def test_what_the_other_apis_refuse_is_refused(api: ComputeApi) -> None:
    body = {"security_group": {"name": "Default", "description": "it"}}
    assert ask(api, "POST", GROUPS, body)[0] == 403
    assert ask(api, "PUT", f"{GROUPS}/{WEB[1]['id']}", body)[0] == 400
    asked = {"volume": {"size": 1, "availability_zone": "nowhere"}}
    status, refused = ask(api, "POST", "/os-volumes", asked)
    assert (status, "'nowhere' is invalid" in str(refused)) == (400, True)
    assert api.conductor.asked == []


@pytest.mark.parametrize(
    ("rule", "method", "path", "body", "status"),
    [
        ("create_security_group", "POST", GROUPS, {"security_group": ("n", "d")}, 403),
        ("update_security_group", "PUT", f"{GROUPS}/WEB", {"security_group": ("n", "d")}, 403),
        ("delete_security_group", "DELETE", f"{GROUPS}/WEB", None, 403),
        ("create_security_group_rule", "POST", A_RULE, "rule", 403),
        ("delete_security_group_rule", "DELETE", f"{A_RULE}/RULE", None, 403),
        ("volume:create", "POST", "/os-volumes", {"volume": {"size": 1}}, 403),
        ("volume:get_all", "GET", "/os-volumes", None, 403),
        ("volume:get", "GET", "/os-volumes/VOLUME", None, 404),
        ("volume:delete", "DELETE", "/os-volumes/VOLUME", None, 403),
        ("volume:get_all_snapshots", "GET", "/os-snapshots", None, 403),
        ("volume:create_snapshot", "POST", "/os-snapshots", "snapshot", 403),
        ("publicize_image", "PUT", f"/images/{MINE}/metadata/visibility", "public", 403),
        ("communitize_image", "PUT", f"/images/{MINE}/metadata/visibility", "community", 403),
    ],
)
def test_the_other_apis_rules_count(
    make: MakeApi, tmp_path: Path, rule: str, method: str, path: str, body: Any, status: int
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{rule}": "!"\n')
    rows = (WEB, OTHER, *RULES, a_volume(1), a_private_image("mine", "demo"))
    api = make(*rows, policy_file=file)
    bodies = {
        "rule": {
            "security_group_rule": {
                "parent_group_id": WEB[1]["id"],
                "ip_protocol": "tcp",
                "from_port": 5,
                "to_port": 5,
            }
        },
        "snapshot": {"snapshot": {"volume_id": volume_id(1)}},
        "public": {"meta": {"visibility": "public"}},
        "community": {"meta": {"visibility": "community"}},
    }
    if isinstance(body, str):
        body = bodies[body]
    elif body and "security_group" in body:
        name, text = body["security_group"]
        body = {"security_group": {"name": name, "description": text}}
    for word, one in (
        ("WEB", WEB[1]["id"]),
        ("RULE", RULES[0][1]["id"]),
        ("VOLUME", volume_id(1)),
    ):
        path = path.replace(word, one)
    token = auth.ADMIN if rule == "publicize_image" else auth.MEMBER
    assert ask(api, method, path, body, token=token)[0] == status
    assert api.conductor.asked == []
