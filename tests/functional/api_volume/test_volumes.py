"""The Block Storage API over HTTP: answers and refusals are Cinder's, and tenants are apart."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.messages.commands import MakeVolume
from common.messages.reports import MadeVolume
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.conductor.harness import IMAGE
from tests.functional.waiting import eventually

OTHER = auth.token("other", "other", "member", "reader")


def make(api: VolumeApi, **asked: Any) -> str:
    status, body = api.ask("POST", "/volumes", {"volume": {"size": 1, **asked}})
    assert status == 202, body
    return str(body["volume"]["id"])


def made(api: VolumeApi, **asked: Any) -> str:
    """A volume whose disk is made."""
    volume_id = make(api, **asked)

    def last() -> Any:
        sent = [one for _, one in api.world.compute.sent if isinstance(one, MakeVolume)]
        return next((one for one in sent if one.resource_id == volume_id), None)

    eventually(last)
    command = last()
    volid = f"data:vm-{command.placed.vmid}-disk-0"
    api.world.answer(command, ok=True, volume=MadeVolume(volid, command.size_gib << 30))
    eventually(lambda: show(api, volume_id)["status"] == "available")
    return volume_id


def show(api: VolumeApi, volume_id: str, **more: Any) -> Any:
    status, body = api.ask("GET", f"/volumes/{volume_id}", **more)
    assert status == 200, body
    return body["volume"]


def message(answer: Any) -> tuple[int, str]:
    status, body = answer
    (fault,) = body.values()
    assert fault["code"] == status
    return status, fault["message"]


def test_the_versions_need_no_token(api: VolumeApi) -> None:
    status, body = api.ask("GET", "/", token=None)
    assert status == 200
    (version,) = body["versions"]
    assert (version["min_version"], version["version"]) == ("3.0", "3.71")
    assert api.ask("GET", "/volumes", token=None)[0] == 401
    assert api.ask("GET", "/volumes", version="3.99")[0] == 406
    assert api.ask("GET", "/volumes", version="3.x")[0] == 400


def test_a_volume(api: VolumeApi) -> None:
    volume_id = make(api, name="data", description="d", metadata={"tier": "gold"})
    shown = show(api, volume_id, version="3.65")
    assert (shown["status"], shown["size"], shown["name"]) == ("creating", 1, "data")
    assert (shown["bootable"], shown["encrypted"], shown["multiattach"]) == ("false", False, False)
    assert (shown["metadata"], shown["attachments"]) == ({"tier": "gold"}, [])
    assert shown["os-vol-tenant-attr:tenant_id"] == "demo"
    assert shown["consumes_quota"] is True
    assert "os-vol-host-attr:host" not in shown
    assert "volume_type_id" not in show(api, volume_id)
    assert show(api, volume_id, token=auth.ADMIN)["os-vol-host-attr:host"] == "pve1@data#data"
    status, body = api.ask("PUT", f"/volumes/{volume_id}", {"volume": {"name": "new"}})
    assert (status, body["volume"]["name"]) == (200, "new")
    metadata = f"/volumes/{volume_id}/metadata"
    assert api.ask("POST", metadata, {"metadata": {"a": "1"}})[1]["metadata"] == {
        "tier": "gold",
        "a": "1",
    }
    assert api.ask("PUT", f"{metadata}/a", {"meta": {"a": "2"}}) == (200, {"meta": {"a": "2"}})
    assert api.ask("DELETE", f"{metadata}/tier")[0] == 200
    assert api.ask("DELETE", f"{metadata}/tier")[0] == 404
    assert api.ask("GET", metadata) == (200, {"metadata": {"a": "2"}})
    assert api.ask("PUT", metadata, {"metadata": {}}) == (200, {"metadata": {}})


def test_lists(api: VolumeApi) -> None:
    first, second = made(api, name="one", metadata={"k": "v"}), make(api, name="two", size=3)
    (theirs,) = [api.ask("POST", "/volumes", {"volume": {"size": 1}}, token=OTHER)[1]["volume"]]

    def found(query: str = "", **more: Any) -> list[str]:
        status, body = api.ask("GET", f"/volumes{query}", **more)
        assert status == 200, body
        return [one["id"] for one in body["volumes"]]

    assert set(found()) == {first, second}
    assert found("?name=two") == [second]
    assert found("?name~=wo", version="3.34") == [second]
    assert found("?status=available") == [first]
    assert found("?metadata={'k':'v'}") == [first]
    assert found("?sort=size:asc") == [first, second]
    assert found("?sort=name:desc&limit=1") == [second]
    assert found(f"?sort=name:desc&marker={second}") == [first]
    assert set(found("/detail?all_tenants=1", token=auth.ADMIN)) == {first, second, theirs["id"]}
    assert set(found("/detail?all_tenants=1")) == {first, second}
    status, body = api.ask("GET", "/volumes/detail?limit=1&with_count=true", version="3.45")
    assert (status, body["count"], len(body["volumes_links"])) == (200, 2, 1)
    for query in ("limit=x", "sort=bad", "sort_key=name&sort_dir=up", "metadata=x"):
        assert api.ask("GET", f"/volumes?{query}")[0] == 400, query
    assert api.ask("GET", f"/volumes?marker={theirs['id']}")[0] == 404
    assert api.ask("GET", "/volumes/summary", version="3.12")[1] == {
        "volume-summary": {"total_count": 2, "total_size": 4}
    }
    usage = api.ask("GET", "/os-quota-sets/demo?usage=true")[1]["quota_set"]
    assert usage["gigabytes"] == {"limit": 1000, "in_use": 4, "reserved": 0}
    assert usage["volumes"]["in_use"] == 2
    assert api.ask("GET", "/limits")[1]["limits"]["absolute"]["totalGigabytesUsed"] == 4


@pytest.mark.parametrize(
    "asked",
    [
        {"size": 0},
        {"size": "x"},
        {"size": None},
        {"size": 1, "multiattach": True},
        {"size": 1, "metadata": {"k": 1}},
        {"size": 1, "name": "x" * 256},
        {"size": 1 << 40},
    ],
    ids=str,
)
def test_what_is_no_volume_is_refused(api: VolumeApi, asked: Any) -> None:
    assert message(api.ask("POST", "/volumes", {"volume": asked}))[0] == 400
    assert api.world.rows(schema.volumes) == []


@pytest.mark.parametrize(
    ("path", "body", "field", "value", "why"),
    [
        ("/volumes", {"volume": {"size": 0}}, "size", "0", "0 is less than the minimum"),
        ("/volumes", {"volume": {"size": 1, "snapshot_id": "x"}}, "snapshot_id", "x", "'x'"),
        ("/volumes", {"volume": {"size": 1, "name": 5}}, "name", "5", "5 is not of type"),
        ("/volumes", {"volume": {"size": 1, "multiattach": "x"}}, "multiattach", "x", "'x' is"),
        ("/snapshots", {"snapshot": {"volume_id": "x"}}, "volume_id", "x", "'x' is not a 'uuid'"),
        ("/backups", {"backup": {"volume_id": "x"}}, "volume_id", "x", "'x' is not a 'uuid'"),
    ],
    ids=str,
)
def test_a_refusal_names_the_field_and_its_value(
    api: VolumeApi, path: str, body: Any, field: str, value: str, why: str
) -> None:
    """As in cinder/api/validation/validators.py, with the limit where it has alternatives."""
    status, text = message(api.ask("POST", path, body))
    said = f"Invalid input for field/attribute {field}. Value: {value}. {why}"
    assert (status, text[: len(said)]) == (400, said)


def test_a_refusal_of_metadata_names_no_value(api: VolumeApi) -> None:
    """They may hold secrets, and refusals are kept and shown."""
    body = {"volume": {"size": 1, "metadata": {"key": ["hush"]}}}
    status, text = message(api.ask("POST", "/volumes", body))
    assert status == 400
    assert text.startswith("Invalid input for field/attribute key. ")
    assert "hush" not in text


def test_what_is_too_much_is_413(api: VolumeApi) -> None:
    quota = {"quota_set": {"volumes": 0}}
    assert api.ask("PUT", "/os-quota-sets/demo", quota, token=auth.ADMIN)[0] == 200
    answer = api.answer("POST", "/volumes", {"volume": {"size": 1}}, headers={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (413, "0")
    assert answer.json["overLimit"]["message"].startswith("Maximum number of volumes allowed (0)")
    huge = {"volume": {"size": 1, "name": "x" * (1 << 21)}}
    assert api.ask("POST", "/volumes", huge)[0] == 413


def test_spaces_around_names_dont_count(api: VolumeApi) -> None:
    """And null is no name, as in Cinder."""
    padded, plain = {"name": " n ", "description": " d "}, {"name": "n", "description": "d"}
    volume_id = made(api, **padded)
    asked = {"snapshot": {"volume_id": volume_id, **padded}}
    snapshot = f"/snapshots/{api.ask('POST', '/snapshots', asked)[1]['snapshot']['id']}"
    for path, key in ((f"/volumes/{volume_id}", "volume"), (snapshot, "snapshot")):
        for body, shown in ((None, plain), (padded, plain), ({"name": None}, {"name": ""})):
            if body is not None:
                assert api.ask("PUT", path, {key: body})[0] == 200
            assert shown.items() <= api.ask("GET", path)[1][key].items()


def test_a_property_that_there_is_not_is_refused(api: VolumeApi) -> None:
    """In a create of a volume since 3.53, elsewhere in all versions."""
    asked = {"volume": {"size": 1, "sise": 2}}
    assert message(api.ask("POST", "/volumes", asked, version="3.53"))[0] == 400
    assert api.ask("POST", "/volumes", asked, version="3.52")[0] == 202
    volume_id = made(api, name="one")
    path = f"/volumes/{volume_id}"
    for version in ("3.0", "3.71"):
        for body in ({"name": "x", "nam": "x"}, {"metadata": None}):
            assert api.ask("PUT", path, {"volume": body}, version=version)[0] == 400
        body = {"volume_id": volume_id, "forse": True}
        assert api.ask("POST", "/snapshots", {"snapshot": body}, version=version)[0] == 400
    assert show(api, volume_id)["name"] == "one"
    assert [api.ask("PUT", path, {"volume": {}}, version=f"3.{n}")[0] for n in (52, 53)] == [
        *(200, 400)
    ]
    assert api.world.rows(schema.volume_snapshots) == []


def test_booleans_are_spelled_as_cinder_spells_them(api: VolumeApi) -> None:
    volume_id = made(api, multiattach=None)
    action = f"/volumes/{volume_id}/action"
    for text, wanted in (("y", "true"), ("n", "false"), ("t", "true"), ("f", "false")):
        assert api.ask("POST", action, {"os-set_bootable": {"bootable": text}})[0] == 200
        assert show(api, volume_id)["bootable"] == wanted
    assert api.ask("POST", "/volumes", {"volume": {"size": 1, "multiattach": "y"}})[0] == 400


def test_force_counts_in_a_delete_since_3_23(api: VolumeApi) -> None:
    """Before it is ignored, as Cinder does."""
    path = f"/volumes/{made(api)}?force=true"
    assert api.ask("DELETE", path, version="3.23")[0] == 403
    assert api.ask("DELETE", path, version="3.22")[0] == 202


def test_refusals(api: VolumeApi) -> None:
    unknown = ids.new_uuid()
    assert message(api.ask("GET", f"/volumes/{unknown}")) == (
        404,
        f"Volume {unknown} could not be found.",
    )
    none = {"volume": {"size": 1, "volume_type": "none"}}
    assert api.ask("POST", "/volumes", none)[0] == 404
    for name in ("snapshot_id", "source_volid"):
        asked = {"volume": {"size": 1, name: unknown}}
        assert message(api.ask("POST", "/volumes", asked))[0] == 404
    asked = {"volume": {"size": 1, "imageRef": unknown}}
    assert message(api.ask("POST", "/volumes", asked)) == (
        400,
        "Invalid image identifier or unable to access requested image.",
    )
    volume_id = make(api)
    status, why = message(api.ask("DELETE", f"/volumes/{volume_id}"))
    assert status == 400
    assert why.startswith("Invalid volume: Volume status must be available or")
    action = f"/volumes/{volume_id}/action"
    for body in ({}, {"os-nothing": {}}, {"os-extend": {}}, {"os-attach": {}}):
        assert api.ask("POST", action, body)[0] == 400, body
    api.world.conductor.cloud.conf.set_override("volumes", 1, "quota")
    status, why = message(api.ask("POST", "/volumes", {"volume": {"size": 1}}))
    assert (status, why) == (
        413,
        "Maximum number of volumes allowed (1) exceeded for quota 'volumes'.",
    )
    assert api.ask("POST", "/snapshots", {"snapshot": {"volume_id": volume_id}})[0] == 400
    assert api.ask("GET", f"/snapshots/{unknown}")[0] == 404


@pytest.mark.parametrize("other", ["imageRef", "snapshot_id", "backup_id"])
def test_a_volume_is_made_of_one_thing(api: VolumeApi, other: str) -> None:
    """What is named besides would be another project's, and busy while the copy is made."""
    theirs, named = made(api), IMAGE if other == "imageRef" else ids.new_uuid()
    asked = {"volume": {"size": 1, "source_volid": theirs, other: named}}
    answer = api.ask("POST", "/volumes", asked, token=OTHER, version="3.47")
    assert message(answer) == (
        400,
        "Invalid input received: May specify only one of backup, imageRef, snapshot, source "
        "volume",
    )
    assert [one.id for one in api.world.rows(schema.volumes)] == [theirs]


def test_actions(api: VolumeApi) -> None:
    volume_id = made(api)
    action = f"/volumes/{volume_id}/action"

    def do(body: Any, **more: Any) -> int:
        status, _ = api.ask("POST", action, body, **more)
        return int(status)

    assert do({"os-reserve": {}}) == 202
    assert show(api, volume_id)["status"] == "attaching"
    assert do({"os-reserve": {}}) == 400
    # As in Cinder the second time does nothing.
    assert (do({"os-unreserve": {}}), do({"os-unreserve": {}})) == (202, 202)
    assert show(api, volume_id)["status"] == "available"
    assert do({"os-set_bootable": {"bootable": True}}) == 200
    assert do({"os-update_readonly_flag": {"readonly": True}}) == 202
    shown = show(api, volume_id)
    assert (shown["bootable"], shown["metadata"]) == ("true", {"readonly": "True"})
    image = {"os-set_image_metadata": {"metadata": {"os_distro": "debian"}}}
    assert do(image) == 200
    assert show(api, volume_id)["volume_image_metadata"] == {"os_distro": "debian"}
    assert do({"os-unset_image_metadata": {"key": "os_distro"}}) == 200
    assert do({"os-unset_image_metadata": {"key": "os_distro"}}) == 404
    assert do({"os-extend": {"new_size": 1}}) == 400
    assert do({"os-reset_status": {"status": "error"}}) == 403
    assert do({"os-reset_status": {"status": "error"}}, token=auth.ADMIN) == 202
    assert do({"os-reset_status": {"status": "nonsense"}}, token=auth.ADMIN) == 400
    assert show(api, volume_id)["status"] == "error"
    assert do({"os-extend": {"new_size": 2}}) == 400
    assert api.ask("DELETE", f"/volumes/{volume_id}")[0] == 202
    assert show(api, volume_id)["status"] == "deleting"


def test_another_image(api: VolumeApi) -> None:
    volume_id = made(api, size=2)
    action = f"/volumes/{volume_id}/action"

    def do(body: Any, token: str = auth.MEMBER, version: str = "3.68") -> Any:
        return api.ask("POST", action, body, token=token, version=version)

    body = {"os-reimage": {"image_id": IMAGE}}
    unknown = {"os-reimage": {"image_id": ids.new_uuid()}}
    assert do(body, version="3.67")[0] == 404
    assert do({"os-reimage": {}})[0] == 400
    assert do({"os-reimage": {"image_id": "x"}})[0] == 400
    assert do(unknown)[0] == 404
    assert do(body, token=auth.READER)[0] == 403
    assert do(body, token=OTHER)[0] == 404
    assert show(api, volume_id)["status"] == "available"
    assert do(body)[0] == 202
    assert show(api, volume_id)["status"] == "downloading"
    status, why = message(do(body))
    assert status == 400
    assert "status must be available or error, but current status is: downloading" in why


def test_readers_and_others(api: VolumeApi) -> None:
    volume_id = made(api, name="mine")
    for token, status in ((OTHER, 404), (auth.READER, 403)):
        for method, path, body in (
            ("PUT", f"/volumes/{volume_id}", {"volume": {"name": "x"}}),
            ("DELETE", f"/volumes/{volume_id}", None),
            ("POST", f"/volumes/{volume_id}/metadata", {"metadata": {"a": "b"}}),
            ("POST", f"/volumes/{volume_id}/action", {"os-extend": {"new_size": 5}}),
            ("POST", f"/volumes/{volume_id}/action", {"os-reserve": {}}),
        ):
            assert api.ask(method, path, body, token=token)[0] == status, (method, path)
    assert api.ask("GET", f"/volumes/{volume_id}", token=OTHER)[0] == 404
    assert api.ask("GET", "/volumes", token=OTHER)[1] == {"volumes": []}
    assert api.ask("GET", f"/volumes/{volume_id}", token=auth.READER)[0] == 200
    assert api.ask("POST", "/volumes", {"volume": {"size": 1}}, token=auth.READER)[0] == 403
    assert api.ask("GET", "/os-quota-sets/demo", token=OTHER)[0] == 403
    assert api.ask("GET", "/os-services")[0] == 403
    other = "0123456789abcdef0123456789abcdef"
    assert api.ask("GET", f"/{other}/volumes")[0] == 400


def test_types(api: VolumeApi) -> None:
    ((data,),) = [api.ask("GET", "/types")[1]["volume_types"]]
    assert (data["name"], data["is_public"]) == ("data", True)
    assert "volume_backend_name" not in data["extra_specs"]
    assert api.ask("GET", "/types/default")[1]["volume_type"]["id"] == data["id"]
    asked = {"volume_type": {"name": "gold", "os-volume-type-access:is_public": False}}
    assert api.ask("POST", "/types", asked)[0] == 403
    status, body = api.ask("POST", "/types", asked, token=auth.ADMIN)
    gold = body["volume_type"]["id"]
    assert status == 200
    assert api.ask("POST", "/types", asked, token=auth.ADMIN)[0] == 409
    assert api.ask("GET", f"/types/{gold}")[0] == 404
    specs, admin = f"/types/{gold}/extra_specs", {"token": auth.ADMIN}
    backend = {"extra_specs": {"volume_backend_name": "data"}}
    assert api.ask("POST", specs, backend, **admin) == (200, backend)
    action = f"/types/{gold}/action"
    assert api.ask("POST", action, {"addProjectAccess": {"project": "demo"}}, **admin)[0] == 202
    assert api.ask("POST", action, {"addProjectAccess": {"project": "demo"}}, **admin)[0] == 409
    assert api.ask("GET", f"/types/{gold}")[0] == 200
    volume_id = make(api, volume_type="gold")
    assert show(api, volume_id)["volume_type"] == "gold"
    assert message(api.ask("DELETE", f"/types/{gold}", **admin))[0] == 400
    quota = {"quota_set": {"gigabytes_gold": 2}}
    assert api.ask("PUT", "/os-quota-sets/demo", quota, **admin)[0] == 200
    status, why = message(
        api.ask("POST", "/volumes", {"volume": {"size": 2, "volume_type": "gold"}})
    )
    assert (status, "gigabytes_gold" in why) == (413, True)
    assert api.ask("PUT", "/os-quota-sets/demo", {"quota_set": {"bad": 1}}, **admin)[0] == 400
    assert api.ask("DELETE", "/os-quota-sets/demo", **admin)[0] == 200


def test_a_message_says_why_a_volume_is_in_error(api: VolumeApi) -> None:
    asked = {"volume_type": {"name": "far", "extra_specs": {"volume_backend_name": "moon"}}}
    assert api.ask("POST", "/types", asked, token=auth.ADMIN)[0] == 200
    volume_id = make(api, volume_type="far")
    assert show(api, volume_id)["status"] == "error"
    (one,) = api.ask("GET", "/messages", version="3.3")[1]["messages"]
    assert one["resource_uuid"] == volume_id
    assert "no storage that is moon" in one["user_message"]
    path = f"/messages/{one['id']}"
    assert api.ask("GET", path, version="3.3")[1] == {"message": one}
    assert api.ask("GET", path, version="3.3", token=OTHER)[0] == 404
    assert api.ask("GET", "/messages")[0] == 404


def test_what_there_is_besides(api: VolumeApi) -> None:
    admin = {"token": auth.ADMIN}
    zones = api.ask("GET", "/os-availability-zone")[1]["availabilityZoneInfo"]
    assert [one["zoneName"] for one in zones] == ["nova"]
    services = api.ask("GET", "/os-services", **admin)[1]["services"]
    assert {one["host"] for one in services} == {"pve1", "pve2"}
    (pool,) = api.ask("GET", "/scheduler-stats/get_pools?detail=true", **admin)[1]["pools"]
    assert pool["capabilities"]["total_capacity_gb"] == 1000
    for path in ("snapshots/detail", "backups", "consistencygroups"):
        status, body = api.ask("GET", f"/{path}")
        assert (status, list(body.values())) == (200, [[]]), path

    assert api.ask("GET", "/attachments", version="3.27") == (200, {"attachments": []})
    assert api.ask("GET", "/attachments")[0] == 404
