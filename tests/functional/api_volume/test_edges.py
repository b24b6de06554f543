"""What Cinder has besides, over HTTP: true lists, and refusals where something would be made."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_snapshots import made, taken
from tests.functional.api_volume.test_volumes import OTHER, make, message, show
from tests.functional.conductor.harness import IMAGE

ADMIN = {"token": auth.ADMIN}
NEWEST: dict[str, Any] = {**ADMIN, "version": "3.71"}

LISTS = (
    *("groups", "groups/detail", "group_types", "group_snapshots", "group_snapshots/detail"),
    *("consistencygroups", "consistencygroups/detail", "cgsnapshots", "cgsnapshots/detail"),
    *("qos-specs", "manageable_volumes", "manageable_volumes/detail", "manageable_snapshots"),
    *("clusters", "clusters/detail", "default-types"),
)


@pytest.mark.parametrize("path", LISTS)
def test_lists_of_what_there_is_none_of(api: VolumeApi, path: str) -> None:
    status, body = api.ask("GET", f"/{path}", **NEWEST)
    assert (status, list(body.values())) == (200, [[]])
    assert api.ask("GET", f"/{path.partition('/')[0]}/{ids.new_uuid()}", **NEWEST)[0] == 404


@pytest.mark.parametrize("path", [one for one in LISTS if "/" not in one])
def test_none_is_made(api: VolumeApi, path: str) -> None:
    status, _ = api.ask("POST", f"/{path}", {"x": {}}, **NEWEST)
    assert status == (405 if path in ("clusters", "default-types") else 400)


@pytest.mark.parametrize(
    ("path", "since"),
    [
        *(("clusters", 7), ("manageable_volumes", 8), ("manageable_snapshots", 8)),
        *(("group_types", 11), ("groups", 13), ("groups/detail", 13), ("group_snapshots", 14)),
    ],
)
def test_since_when_there_are_lists_of_nothing(api: VolumeApi, path: str, since: int) -> None:
    assert api.ask("GET", f"/{path}", version=f"3.{since}", **ADMIN)[0] == 200
    before = {"version": f"3.{since - 1}", **ADMIN}
    assert api.ask("GET", f"/{path}", **before)[0] == 404
    if path not in ("clusters", "groups/detail"):
        assert api.ask("POST", f"/{path}", {"x": {}}, **before)[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        *("clusters", "manageable_volumes", "manageable_snapshots", "default-types", "os-hosts"),
        *("qos-specs", "qos-specs/x", "os-quota-class-sets/default"),
    ],
)
def test_members_may_not_look_at_these(api: VolumeApi, path: str) -> None:
    assert api.ask("GET", f"/{path}", version="3.71")[0] == 403


def test_readers_change_no_attachment(api: VolumeApi) -> None:
    reader: dict[str, Any] = {"token": auth.READER, "version": "3.54"}
    path, body = f"/attachments/{ids.new_uuid()}", {"attachment": {"connector": {}}}
    assert api.ask("PUT", path, body, **reader)[0] == 403
    assert api.ask("PUT", path, body, version="3.54")[0] == 404
    path, body = f"{path}/action", {"os-complete": {}}
    assert api.ask("POST", path, body, **reader)[0] == 403
    assert api.ask("POST", path, body, version="3.44")[0] == 404
    assert api.ask("POST", path, body, version="3.43", token=auth.READER)[0] == 404


def test_pools_of_a_type(api: VolumeApi) -> None:
    """Since 3.35; since 3.31 a filter that there is not is refused to administrators, too."""
    asked = {"volume_type": {"name": "far", "extra_specs": {"volume_backend_name": "moon"}}}
    assert api.ask("POST", "/types", asked, **ADMIN)[0] == 200
    pools = "/scheduler-stats/get_pools"

    def number(query: str, version: str = "3.35") -> int:
        status, body = api.ask("GET", f"{pools}?{query}", version=version, **ADMIN)
        assert status == 200, body
        return len(body["pools"])

    assert [number(f"volume_type={name}") for name in ("data", "far")] == [1, 0]
    assert number("volume_type=far", "3.34") == 1
    assert api.ask("GET", f"{pools}?volume_type=none", version="3.35", **ADMIN)[0] == 404
    assert number("detail=true&color=red", "3.30") == 1
    assert api.ask("GET", f"{pools}?color=red", version="3.31", **ADMIN)[0] == 400


def test_default_types(api: VolumeApi) -> None:
    path, asked = "/default-types/demo", {"volume_type": {"name": "mine"}}
    mine = api.ask("POST", "/types", asked, **ADMIN)[1]["volume_type"]["id"]
    body, shown = {"default_type": {"volume_type": "mine"}}, {"project_id": "demo"}
    shown["volume_type_id"] = mine
    for method, sent, status in (("GET", None, 404), ("PUT", body, 200), ("DELETE", None, 204)):
        assert api.ask(method, path, sent, version="3.71")[0] == 403
        assert api.ask(method, path, sent, **ADMIN)[0] == 404
        assert api.ask(method, path, sent, **NEWEST)[0] == status
    assert api.ask("PUT", path, body, **NEWEST)[1] == {"default_type": shown}
    assert api.ask("GET", path, **NEWEST)[1] == {"default_type": shown}
    assert api.ask("GET", "/default-types", **NEWEST)[1] == {"default_types": [shown]}
    assert api.ask("GET", "/types/default")[1]["volume_type"]["id"] == mine
    assert show(api, make(api))["volume_type"] == "mine"
    theirs = api.ask("POST", "/volumes", {"volume": {"size": 1}}, token=OTHER)[1]["volume"]
    assert theirs["volume_type"] is None
    refused = api.ask("DELETE", f"/types/{mine}", **ADMIN)
    words = f"The volume type {mine} is a default volume type and cannot be deleted."
    assert message(refused) == (400, words)
    for wrong in ({"volume_type": "none"}, {}, {"volume_type": 1}, {"volume_type": "x", "a": 1}):
        assert api.ask("PUT", path, {"default_type": wrong}, **NEWEST)[0] == 400, wrong
    assert api.ask("GET", path, **NEWEST)[1] == {"default_type": shown}
    assert api.ask("DELETE", path, **NEWEST)[0] == 204
    assert show(api, make(api))["volume_type"] is None


def test_a_disabled_service_gets_no_new_volumes(api: VolumeApi) -> None:
    """What it has is still usable, and servers may still be on its host."""
    kept, on = made(api, size=1), {"binary": "cinder-volume", "host": "pve1"}
    path = "/os-services/disable-log-reason"
    status, answer = api.ask("PUT", path, {**on, "disabled_reason": "dusty"}, **ADMIN)
    assert (status, answer["status"], answer["disabled_reason"]) == (200, "disabled", "dusty")
    assert services(api) == {"pve1": ("disabled", "dusty"), "pve2": ("enabled", None)}
    assert {one.disabled for one in api.world.rows(schema.services)} == {False}
    assert show(api, make(api), **ADMIN)["os-vol-host-attr:host"] == "pve2@data#data"
    assert api.ask("PUT", "/os-services/disable", {**on, "host": "pve2"}, **ADMIN)[0] == 200
    assert show(api, make(api))["status"] == "error"
    extend = {"os-extend": {"new_size": 2}}
    assert api.ask("POST", f"/volumes/{kept}/action", extend)[0] == 202
    assert api.ask("PUT", "/os-services/enable", on, **ADMIN)[1]["status"] == "enabled"
    assert services(api)["pve1"] == ("enabled", None)
    assert show(api, make(api))["status"] == "creating"
    before = services(api)
    for body, status in (
        ({"host": "pve1"}, 400),
        ({"binary": "cinder-volume", "host": "pve9"}, 404),
        ({"binary": "cinder-backup", "host": "pve1"}, 404),
        ({**on, "color": "red"}, 400),
        ({**on, "host": 5}, 400),
    ):
        assert api.ask("PUT", "/os-services/disable", body, **ADMIN)[0] == status, body
    assert services(api) == before


def services(api: VolumeApi) -> dict[str, tuple[str, str | None]]:
    found = api.ask("GET", "/os-services", **ADMIN)[1]["services"]
    return {one["host"]: (one["status"], one["disabled_reason"]) for one in found}


def test_a_type_asks_for_what_a_storage_can_do(api: VolumeApi) -> None:
    """As Cinder's CapabilitiesFilter, which names without a scope are for."""
    for number, (specs, fits) in enumerate(
        (
            ({"storage_protocol": "rbd"}, True),
            ({"capabilities:storage_protocol": "<or> nfs <or> rbd"}, True),
            ({"free_capacity_gb": ">= 100", "multiattach": "<is> False"}, True),
            ({"vendor:color": "red", "storage:type": "x"}, True),
            ({"storage_protocol": "nfs"}, False),
            ({"total_capacity_gb": "> 5000"}, False),
            ({"multiattach": "<is> True"}, False),
            ({"color": "red"}, False),
        )
    ):
        type_ = {"name": f"t{number}", "extra_specs": specs}
        assert api.ask("POST", "/types", {"volume_type": type_}, **ADMIN)[0] == 200
        shown = show(api, make(api, volume_type=f"t{number}"))
        assert shown["status"] == ("creating" if fits else "error"), specs
    _, body = api.ask("GET", "/messages", version="3.5")
    assert "color=red" in " ".join(one["user_message"] for one in body["messages"])


def test_an_image_names_the_type_of_its_volumes(api: VolumeApi) -> None:
    """Cinder's cinder_img_volume_type, unless the request names another one."""
    asked = {"volume_type": {"name": "fast"}}
    assert api.ask("POST", "/types", asked, **ADMIN)[0] == 200

    def named(value: str) -> None:
        images = schema.images
        properties = {"cinder_img_volume_type": value}
        change = images.update().where(images.c.id == IMAGE).values(properties=properties)
        api.world.conductor.store.run(lambda connection: connection.execute(change))

    named("fast")
    of_image: dict[str, Any] = {"imageRef": IMAGE, "size": 3}
    assert show(api, make(api, **of_image))["volume_type"] == "fast"
    assert show(api, make(api, **of_image, volume_type="data"))["volume_type"] == "data"
    named("none")
    status, why = message(api.ask("POST", "/volumes", {"volume": of_image}))
    assert (status, why) == (404, "Volume type with name none could not be found.")


def test_extensions_and_filters(api: VolumeApi) -> None:
    found = {one["alias"]: one for one in api.ask("GET", "/extensions")[1]["extensions"]}
    assert {"os-volume-transfer", "os-quota-sets"} <= found.keys()
    assert not {"qos-specs", "encryption", "consistencygroups"} & found.keys()
    one = found["os-volume-transfer"]
    assert (one["name"], one["updated"]) == ("VolumeTransfer", "2013-05-29T00:00:00+00:00")
    assert api.ask("GET", "/extensions/os-volume-transfer")[1] == {"extension": one}
    assert api.ask("GET", "/extensions/qos-specs")[0] == 404
    assert api.ask("GET", "/resource_filters", version="3.32")[0] == 404
    filters = api.ask("GET", "/resource_filters", version="3.33")[1]["resource_filters"]
    assert {"volume", "snapshot", "attachment", "message"} <= {one["resource"] for one in filters}
    path = "/resource_filters?resource=message"
    (one,) = api.ask("GET", path, version="3.33")[1]["resource_filters"]
    assert set(one["filters"]) == {
        *("resource_uuid", "resource_type", "event_id", "request_id", "message_level")
    }
    path = "/resource_filters?resource=x"
    assert api.ask("GET", path, version="3.33")[1] == {"resource_filters": []}


def test_the_summary_has_the_metadata(api: VolumeApi) -> None:
    made(api, metadata={"tier": "gold", "a": "1"}, size=2)
    made(api, metadata={"tier": "iron"})
    path = "/volumes/summary"
    assert api.ask("GET", path, version="3.12")[1]["volume-summary"] == {
        **{"total_count": 2, "total_size": 3}
    }
    assert api.ask("GET", path, version="3.36")[1]["volume-summary"]["metadata"] == {
        "a": ["1"],
        "tier": ["gold", "iron"],
    }
    theirs = api.ask("GET", path, version="3.36", token=OTHER)[1]["volume-summary"]
    assert theirs == {"total_count": 0, "total_size": 0, "metadata": {}}


def test_a_volume_names_its_service(api: VolumeApi) -> None:
    volume_id = made(api)
    services = {one.host: one.uuid for one in api.world.rows(schema.services)}
    assert show(api, volume_id, version="3.48")["service_uuid"] == services["pve1"]
    assert "service_uuid" not in show(api, volume_id)
    assert api.ask("GET", f"/volumes/{volume_id}/encryption")[1] == {"encryption_key_id": None}
    assert api.ask("GET", f"/volumes/{volume_id}/encryption", token=OTHER)[0] == 404


def test_hosts_and_services(api: VolumeApi) -> None:
    volume_id = made(api, size=2)
    taken(api, volume_id)
    hosts = api.ask("GET", "/os-hosts?zone=nova", **ADMIN)[1]["hosts"]
    assert {one["host_name"] for one in hosts} == {"pve1", "pve2"}
    assert api.ask("GET", "/os-hosts?zone=x", **ADMIN)[1] == {"hosts": []}
    total, mine = api.ask("GET", "/os-hosts/pve1", **ADMIN)[1]["host"]
    numbers = {
        **{"volume_count": "1", "total_volume_gb": "2"},
        **{"snapshot_count": "1", "total_snapshot_gb": "2"},
    }
    assert total["resource"] == {"host": "pve1", "project": "(total)", **numbers}
    assert mine["resource"] == {"host": "pve1", "project": "demo", **numbers}
    (total,) = api.ask("GET", "/os-hosts/pve2", **ADMIN)[1]["host"]
    assert total["resource"]["volume_count"] == "0"
    assert message(api.ask("GET", "/os-hosts/x", **ADMIN)) == (404, "Host x could not be found.")
    assert api.ask("PUT", "/os-hosts/pve1", {"status": "disable"}, **ADMIN)[0] == 400
    services = api.ask("GET", "/os-services", **NEWEST)[1]["services"]
    assert {(one["cluster"], one["backend_state"]) for one in services} == {(None, "up")}
    for name in ("freeze", "failover_host", "get-log"):
        body = {"binary": "cinder-volume", "host": "pve1"}
        assert api.ask("PUT", f"/os-services/{name}", body, **NEWEST)[0] == 400, name
        assert api.ask("PUT", f"/os-services/{name}", body)[0] == 403
    assert api.ask("PUT", "/os-services/x", {}, **ADMIN)[0] == 404
    shown = api.ask("GET", "/capabilities/pve1@data", **ADMIN)[1]
    assert shown["volume_backend_name"] == "data"
    assert api.ask("GET", "/capabilities/x", **ADMIN)[0] == 404
    path = "/scheduler-stats/get_pools?name=pve1@data%23data"
    assert len(api.ask("GET", path, **NEWEST)[1]["pools"]) == 1
    path = "/scheduler-stats/get_pools?name=x"
    assert api.ask("GET", path, **NEWEST)[1] == {"pools": []}


def test_nothing_is_left_to_clean_up(api: VolumeApi) -> None:
    path, nothing = "/workers/cleanup", {"cleaning": [], "unavailable": []}
    for body in ({}, None, {"host": "pve1", "resource_type": "Volume"}):
        assert api.ask("POST", path, body, **NEWEST) == (202, nothing)
    assert api.ask("POST", path, {"x": 1}, **NEWEST)[0] == 400
    assert api.ask("POST", path, {}, version="3.71")[0] == 403
    assert api.ask("POST", path, {}, **ADMIN)[0] == 404


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"status": None}, {"status": "error", "attach_status": "x"}),
        *({"status": "error", "attach_status": "attached"}, {"attach_status": "attached"}),
        {"status": "error", "migration_status": "migrating"},
    ],
    ids=str,
)
def test_a_reset_that_cant_be_changes_nothing(api: VolumeApi, asked: dict[str, Any]) -> None:
    volume_id = made(api)
    reset = {"os-reset_status": asked}
    assert message(api.ask("POST", f"/volumes/{volume_id}/action", reset, **ADMIN))[0] == 400
    assert show(api, volume_id)["status"] == "available"


def test_a_reset_in_capitals_and_of_what_is_so(api: VolumeApi) -> None:
    volume_id = made(api)
    path = f"/volumes/{volume_id}"
    for asked, status in (
        ({"status": "ERROR", "attach_status": "Detached"}, "error"),
        ({"attach_status": "detached", "migration_status": "none"}, "error"),
        ({"status": "available", "attach_status": None}, "available"),
    ):
        assert api.ask("POST", f"{path}/action", {"os-reset_status": asked}, **ADMIN)[0] == 202
        assert show(api, volume_id)["status"] == status
    snapshot = f"/snapshots/{taken(api, volume_id)}"
    reset = {"os-reset_status": {"status": "Error"}}
    assert api.ask("POST", f"{snapshot}/action", reset, **ADMIN)[0] == 202
    assert api.ask("GET", snapshot)[1]["snapshot"]["status"] == "error"
    assert "migration_status" not in show(api, volume_id)
    assert show(api, volume_id, **ADMIN)["migration_status"] is None


def test_metadata_that_nobody_else_has_changed(api: VolumeApi) -> None:
    """Since 3.15 a list has an ETag, which a change may ask for."""
    path = f"/volumes/{made(api, metadata={'a': '1'})}/metadata"

    def ask(method: str, below: str, body: Any, version: str, **headers: str) -> Any:
        headers["OpenStack-API-Version"] = f"volume {version}"
        return api.answer(method, f"{path}{below}", body, headers=headers)

    etag = ask("GET", "", None, "3.15").headers["etag"]
    assert "etag" not in ask("GET", "", None, "3.14").headers
    two, other = {"meta": {"a": "2"}}, {"metadata": {"b": "1"}}
    assert ask("PUT", "/a", two, "3.15", **{"If-Match": etag}).status_code == 200
    for below, body in (("", other), ("/a", {"meta": {"a": "3"}})):
        answer = ask("PUT", below, body, "3.15", **{"If-Match": etag})
        assert (answer.status_code, answer.content) == (412, b"")
    assert api.ask("GET", path)[1] == {"metadata": {"a": "2"}}
    assert ask("PUT", "", other, "3.15", **{"If-Match": "*"}).status_code == 200
    assert ask("PUT", "", {"metadata": {}}, "3.14", **{"If-Match": etag}).status_code == 200


def test_metadata_dont_grow_without_end(api: VolumeApi) -> None:
    volume_id = made(api)
    snapshot_id = taken(api, volume_id)
    many = {f"k{number}": "v" for number in range(128)}
    for path in (f"/volumes/{volume_id}/metadata", f"/snapshots/{snapshot_id}/metadata"):
        assert api.ask("POST", path, {"metadata": many})[0] == 200
        status, why = message(api.ask("POST", path, {"metadata": {"one": "more"}}))
        assert (status, "metadata" in why) == (400, True)
        assert api.ask("POST", path, {"metadata": {"k0": "w"}})[0] == 200
        assert len(api.ask("GET", path)[1]["metadata"]) == 128
    action = f"/volumes/{volume_id}/action"
    for items, status in ((many, 200), ({"one": "more"}, 400)):
        asked = {"os-set_image_metadata": {"metadata": items}}
        assert api.ask("POST", action, asked)[0] == status
    assert len(show(api, volume_id)["volume_image_metadata"]) == 128


def test_types_arent_encrypted(api: VolumeApi) -> None:
    (one,) = api.ask("GET", "/types", **ADMIN)[1]["volume_types"]
    path = f"/types/{one['id']}/encryption"
    assert api.ask("GET", path, **ADMIN) == (200, {})
    assert api.ask("POST", path, {"encryption": {"provider": "luks"}}, **ADMIN)[0] == 400
    for method in ("GET", "PUT", "DELETE"):
        assert api.ask(method, f"{path}/{ids.new_uuid()}", {}, **ADMIN)[0] == 404
    assert api.ask("GET", path)[0] == 403
    assert api.ask("GET", f"/types/{ids.new_uuid()}/encryption", **ADMIN)[0] == 404
