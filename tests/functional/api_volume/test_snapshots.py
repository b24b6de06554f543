"""`/snapshots` over HTTP: answers and refusals are Cinder's, and tenants are apart."""

from __future__ import annotations

from typing import Any

from common import ids
from common.messages.commands import MakeVolume, SnapVolume
from common.messages.reports import MadeVolume
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_volumes import OTHER, make, message, show
from tests.functional.waiting import eventually


def made(api: VolumeApi, way: str = "online", **asked: Any) -> str:
    """A volume that is there, on a storage that makes snapshots in this way."""
    volume_id = make(api, **asked)
    command = sent(api, MakeVolume, volume_id)
    volume = MadeVolume(f"data:vm-{command.placed.vmid}-disk-0", command.size_gib << 30, way)
    api.world.answer(command, ok=True, volume=volume)
    eventually(lambda: show(api, volume_id)["status"] == "available")
    return volume_id


def sent(api: VolumeApi, kind: type[Any], uuid: str, number: int = 1) -> Any:
    def found() -> list[Any]:
        every = [one for _, one in api.world.compute.sent if isinstance(one, kind)]
        return [one for one in every if one.resource_id == uuid]

    eventually(lambda: len(found()) >= number)
    return found()[number - 1]


def taken(
    api: VolumeApi, volume_id: str, number: int = 1, token: str = auth.MEMBER, **asked: Any
) -> str:
    body = {"snapshot": {"volume_id": volume_id, **asked}}
    status, answer = api.ask("POST", "/snapshots", body, token=token)
    assert status == 202, answer
    snapshot_id = str(answer["snapshot"]["id"])
    api.world.answer(sent(api, SnapVolume, volume_id, number), ok=True)
    eventually(lambda: shown(api, snapshot_id, token=token)["status"] == "available")
    return snapshot_id


def shown(api: VolumeApi, snapshot_id: str, **more: Any) -> Any:
    status, body = api.ask("GET", f"/snapshots/{snapshot_id}", **more)
    assert status == 200, body
    return body["snapshot"]


def test_a_snapshot(api: VolumeApi) -> None:
    volume_id = made(api)
    snapshot_id = taken(api, volume_id, name="first", metadata={"a": "1"})
    one = shown(api, snapshot_id, version="3.65")
    assert (one["volume_id"], one["size"], one["name"]) == (volume_id, 1, "first")
    assert one["os-extended-snapshot-attributes:progress"] == "100%"
    assert one["os-extended-snapshot-attributes:project_id"] == "demo"
    assert (one["metadata"], one["consumes_quota"]) == ({"a": "1"}, True)
    assert "user_id" not in shown(api, snapshot_id)
    path = f"/snapshots/{snapshot_id}"
    status, body = api.ask("PUT", path, {"snapshot": {"name": "new", "description": "d"}})
    assert (status, body["snapshot"]["name"], body["snapshot"]["description"]) == (200, "new", "d")
    metadata = f"{path}/metadata"
    assert api.ask("POST", metadata, {"metadata": {"b": "2"}})[1]["metadata"] == {
        "a": "1",
        "b": "2",
    }
    assert api.ask("PUT", f"{metadata}/b", {"meta": {"b": "3"}}) == (200, {"meta": {"b": "3"}})
    assert api.ask("DELETE", f"{metadata}/a")[0] == 200
    assert message(api.ask("GET", f"{metadata}/a")) == (
        404,
        f"Snapshot {snapshot_id} has no metadata with key a.",
    )
    assert api.ask("GET", metadata) == (200, {"metadata": {"b": "3"}})
    assert message(api.ask("DELETE", f"/volumes/{volume_id}"))[0] == 400
    assert api.ask("DELETE", path)[0] == 202
    assert shown(api, snapshot_id)["status"] == "deleting"
    api.world.answer(sent(api, SnapVolume, volume_id, 2), ok=True, gone=True)
    eventually(lambda: api.ask("GET", path)[0] == 404)


def test_lists(api: VolumeApi) -> None:
    first, second = made(api), made(api)
    ids_ = [taken(api, first, name="a"), taken(api, second, name="b", metadata={"k": "v"})]

    def found(query: str = "", **more: Any) -> list[str]:
        status, body = api.ask("GET", f"/snapshots{query}", **more)
        assert status == 200, body
        return [one["id"] for one in body["snapshots"]]

    assert found() == ids_[::-1]
    assert found("/detail?sort=name:asc") == ids_
    assert found(f"?volume_id={first}") == [ids_[0]]
    assert found("?name=b") == [ids_[1]]
    assert found("?metadata={'k':'v'}", version="3.22") == [ids_[1]]
    assert found("?name~=b", version="3.34") == [ids_[1]]
    assert found("?limit=1") == [ids_[1]]
    assert found(f"?limit=1&marker={ids_[1]}") == [ids_[0]]
    status, body = api.ask("GET", "/snapshots?limit=1&with_count=1", version="3.45")
    assert (status, body["count"]) == (200, 2)
    assert body["snapshots_links"][0]["rel"] == "next"
    assert api.ask("GET", f"/snapshots?marker={ids.new_uuid()}")[0] == 404
    assert api.ask("GET", "/snapshots?sort=moon")[0] == 400
    assert found(token=OTHER) == []
    assert found("?all_tenants=1", token=OTHER) == []
    assert found("?all_tenants=1", token=auth.ADMIN) == ids_[::-1]
    usage = api.ask("GET", "/os-quota-sets/demo?usage=1")[1]["quota_set"]
    assert usage["snapshots"]["in_use"] == 2
    assert usage["gigabytes"]["in_use"] == 4
    assert api.ask("GET", "/limits")[1]["limits"]["absolute"]["totalSnapshotsUsed"] == 2


def test_of_others_there_is_nothing(api: VolumeApi) -> None:
    volume_id = made(api)
    snapshot_id = taken(api, volume_id)
    path = f"/snapshots/{snapshot_id}"
    for method, where, body in (
        ("GET", path, None),
        ("PUT", path, {"snapshot": {"name": "x"}}),
        ("DELETE", path, None),
        ("GET", f"{path}/metadata", None),
        ("POST", f"{path}/metadata", {"metadata": {"a": "b"}}),
        ("POST", f"{path}/action", {"os-reset_status": {"status": "error"}}),
        ("POST", "/snapshots", {"snapshot": {"volume_id": volume_id}}),
        ("POST", "/volumes", {"volume": {"size": 1, "snapshot_id": snapshot_id}}),
        ("POST", "/volumes", {"volume": {"snapshot_id": snapshot_id}}),
        ("POST", "/volumes", {"volume": {"size": 1, "source_volid": volume_id}}),
    ):
        assert api.ask(method, where, body, token=OTHER)[0] == 404, (method, where)
    assert shown(api, snapshot_id)["status"] == "available"
    assert len(api.world.rows(schema.volumes)) == 1


def test_refusals(api: VolumeApi) -> None:
    volume_id = made(api)
    unknown = ids.new_uuid()
    assert message(api.ask("GET", f"/snapshots/{unknown}")) == (
        404,
        f"Snapshot {unknown} could not be found.",
    )
    for wrong in (
        {},
        {"volume_id": "x"},
        {"volume_id": volume_id, "metadata": {"a": 1}},
        {"volume_id": volume_id, "name": "x" * 256},
        {"volume_id": volume_id, "force": "perhaps"},
    ):
        assert api.ask("POST", "/snapshots", {"snapshot": wrong})[0] == 400, wrong
    asked = {"snapshot": {"volume_id": volume_id, "force": False}}
    assert "3.66" in message(api.ask("POST", "/snapshots", asked, version="3.66"))[1]
    revert = {"revert": {"snapshot_id": unknown}}
    action = f"/volumes/{volume_id}/action"
    assert api.ask("POST", action, revert)[0] == 404
    assert message(api.ask("POST", action, revert, version="3.40")) == (
        400,
        f"Volume {volume_id} has no snapshots.",
    )
    snapshot_id = taken(api, volume_id)
    revert = {"revert": {"snapshot_id": snapshot_id}}
    assert api.ask("POST", action, {"os-reserve": {}})[0] == 202
    status, why = message(api.ask("POST", action, revert, version="3.40"))
    assert (status, "current status is: attaching" in why) == (409, True)
    assert api.ask("POST", action, {"os-unreserve": {}})[0] == 202
    of_mine = f"/snapshots/{snapshot_id}/action"
    reset = {"os-reset_status": {"status": "error"}}
    assert api.ask("POST", of_mine, reset)[0] == 403
    assert api.ask("POST", of_mine, reset, token=auth.ADMIN)[0] == 202
    assert shown(api, snapshot_id)["status"] == "error"
    assert message(api.ask("POST", action, revert, version="3.40")) == (
        409,
        f"Invalid snapshot: Snapshot {snapshot_id} is error.",
    )
    assert api.ask("POST", of_mine, {"os-unmanage": None})[0] == 400
    too_small = {"volume": {"size": 1, "snapshot_id": snapshot_id}}
    assert "Originating snapshot" in message(api.ask("POST", "/volumes", too_small))[1]


def test_a_volume_of_a_snapshot_has_its_size(api: VolumeApi) -> None:
    volume_id = made(api, size=3)
    snapshot_id = taken(api, volume_id)
    status, body = api.ask("POST", "/volumes", {"volume": {"snapshot_id": snapshot_id}})
    assert status == 202, body
    volume = body["volume"]
    assert (volume["size"], volume["snapshot_id"]) == (3, snapshot_id)
    assert volume["volume_type"] == show(api, volume_id)["volume_type"]


def test_a_type_says_how_snapshots_are_made(api: VolumeApi) -> None:
    made(api, "copy", volume_type="data")
    types = api.ask("GET", "/types")[1]["volume_types"]
    specs = {one["name"]: one["extra_specs"] for one in types}
    assert specs["data"]["storage:snapshots"] == "copy"
