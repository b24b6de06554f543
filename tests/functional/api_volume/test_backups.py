"""`/backups` over HTTP: answers and refusals are Cinder's, and tenants are apart."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.messages.commands import BackUpVolume, MakeVolume
from common.messages.facts import StorageFacts
from common.messages.reports import MadeVolume
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_snapshots import made, sent
from tests.functional.api_volume.test_volumes import OTHER, message, show
from tests.functional.waiting import eventually

SAFE = StorageFacts("safe", "nfs", True, True, 1000, 900, ("backup",))


@pytest.fixture(autouse=True)
def storage(api: VolumeApi) -> None:
    api.world.storages.append(SAFE)
    api.world.beat()


def saved(api: VolumeApi, volume_id: str, number: int = 1, **asked: Any) -> str:
    """A backup that is there."""
    body = {"backup": {"volume_id": volume_id, **asked}}
    status, answer = api.ask("POST", "/backups", body, version="3.51")
    assert status == 202, answer
    assert set(answer["backup"]) == {"id", "name", "links"}
    backup_id = str(answer["backup"]["id"])
    archive = MadeVolume(f"safe:backup/{backup_id}.vma.zst", 4096)
    api.world.answer(sent(api, BackUpVolume, volume_id, number), ok=True, volume=archive)
    eventually(lambda: shown(api, backup_id)["status"] == "available")
    return backup_id


def shown(api: VolumeApi, backup_id: str, **more: Any) -> Any:
    status, body = api.ask("GET", f"/backups/{backup_id}", **more)
    assert status == 200, body
    return body["backup"]


def test_a_backup(api: VolumeApi) -> None:
    volume_id = made(api)
    backup_id = saved(api, volume_id, name="first", metadata={"a": "1"})
    one = shown(api, backup_id)
    assert (one["volume_id"], one["size"], one["name"]) == (volume_id, 1, "first")
    assert (one["is_incremental"], one["has_dependent_backups"]) == (False, False)
    assert (one["container"], one["object_count"]) == ("safe", 0)
    assert (one["snapshot_id"], one["fail_reason"]) == (None, None)
    assert one["data_timestamp"] == one["created_at"]
    assert "metadata" not in one
    assert shown(api, backup_id, version="3.43")["metadata"] == {"a": "1"}
    assert "os-backup-project-attr:project_id" not in shown(api, backup_id, version="3.56")
    for_admin = shown(api, backup_id, version="3.56", token=auth.ADMIN)
    assert for_admin["os-backup-project-attr:project_id"] == "demo"
    assert for_admin["user_id"]
    edit = {"backup": {"name": "second", "description": "d"}}
    assert api.ask("PUT", f"/backups/{backup_id}", edit)[0] == 404
    assert api.ask("PUT", f"/backups/{backup_id}", edit, version="3.9")[0] == 200
    more = {"backup": {"metadata": {"b": "2"}}}
    assert api.ask("PUT", f"/backups/{backup_id}", more, version="3.9")[0] == 400
    assert api.ask("PUT", f"/backups/{backup_id}", more, version="3.43")[0] == 200
    one = shown(api, backup_id, version="3.43")
    assert (one["name"], one["description"], one["metadata"]) == ("second", "d", {"b": "2"})


def test_lists(api: VolumeApi) -> None:
    volume_id = made(api)
    first, second = (saved(api, volume_id, number, name=f"b{number}") for number in (1, 2))
    _, body = api.ask("GET", "/backups/detail?limit=1&with_count=true", version="3.45")
    assert ([one["id"] for one in body["backups"]], body["count"]) == ([second], 2)
    assert f"marker={second}" in body["backups_links"][0]["href"]
    _, body = api.ask("GET", f"/backups?limit=1&marker={second}")
    assert [one["id"] for one in body["backups"]] == [first]
    for query, found in (
        ("name=b1", [first]),
        ("status=error", []),
        (f"volume_id={volume_id}&sort=name:asc", [first, second]),
    ):
        _, body = api.ask("GET", f"/backups?{query}")
        assert [one["id"] for one in body["backups"]] == found
    assert api.ask("GET", "/backups?sort=nope")[0] == 400
    _, body = api.ask("GET", "/backups", token=OTHER)
    assert body["backups"] == []
    _, body = api.ask("GET", "/backups?all_tenants=1", token=auth.ADMIN)
    assert len(body["backups"]) == 2
    _, body = api.ask("GET", "/limits")
    used = body["limits"]["absolute"]
    assert (used["totalBackupsUsed"], used["totalBackupGigabytesUsed"]) == (2, 2)


def test_restored(api: VolumeApi) -> None:
    volume_id = made(api)
    backup_id = saved(api, volume_id)
    path = f"/backups/{backup_id}/restore"
    status, body = api.ask("POST", path, {"restore": {"name": "back"}})
    assert status == 202, body
    found = body["restore"]
    assert (found["backup_id"], found["volume_name"]) == (backup_id, "back")
    assert show(api, found["volume_id"])["status"] == "restoring-backup"
    again = api.ask("POST", path, {"restore": {}})
    assert message(again) == (400, "Invalid backup: Backup status must be available")
    command = sent(api, MakeVolume, found["volume_id"])
    volume = MadeVolume(f"data:vm-{command.placed.vmid}-disk-0", 1 << 30, "online")
    api.world.answer(command, ok=True, volume=volume)
    eventually(lambda: shown(api, backup_id)["status"] == "available")
    status, body = api.ask("POST", path, {"restore": {"volume_id": volume_id}})
    assert (status, body["restore"]["volume_id"]) == (202, volume_id)
    assert show(api, volume_id)["status"] == "restoring-backup"


def described(api: VolumeApi, volume_id: str) -> tuple[Any, ...]:
    one = show(api, volume_id)
    image = one.get("volume_image_metadata")
    return one["name"], one["description"], one["metadata"], one["bootable"], image


def test_a_restored_volume_has_its_metadata(api: VolumeApi) -> None:
    """In a new volume also the name and the description, unless another name is given."""
    volume_id = made(api, name="data", description="d", metadata={"tier": "gold"})
    action = f"/volumes/{volume_id}/action"
    image = {"os_distro": "debian"}
    for body in (
        {"os-set_bootable": {"bootable": True}},
        {"os-set_image_metadata": {"metadata": image}},
    ):
        assert api.ask("POST", action, body)[0] == 200
    backup_id = saved(api, volume_id)
    full = ("data", "d", {"tier": "gold"}, "true", image)
    assert described(api, restored(api, backup_id, {})) == full
    elsewhere = described(api, restored(api, backup_id, {"name": "back"}))
    assert elsewhere == ("back", "auto-created_from_restore_from_backup", *full[2:])
    other = made(api, name="other", metadata={"a": "b"})
    assert described(api, restored(api, backup_id, {"volume_id": other})) == (
        *("other", None),
        *full[2:],
    )
    body = {"volume": {"backup_id": backup_id}}
    _, answer = api.ask("POST", "/volumes", body, version="3.47")
    assert described(api, answered(api, answer["volume"]["id"])) == full


def restored(api: VolumeApi, backup_id: str, asked: Any) -> str:
    """The volume that a backup was restored into."""
    status, body = api.ask("POST", f"/backups/{backup_id}/restore", {"restore": asked})
    assert status == 202, body
    return answered(api, str(body["restore"]["volume_id"]))


def answered(api: VolumeApi, volume_id: str) -> str:
    """A volume that an agent is asked to make, once it has."""
    number = 2 if show(api, volume_id)["name"] == "other" else 1
    command = sent(api, MakeVolume, volume_id, number)
    volid = f"data:vm-{command.placed.vmid}-disk-0"
    api.world.answer(command, ok=True, volume=MadeVolume(volid, 1 << 30, "online"))
    eventually(lambda: show(api, volume_id)["status"] == "available")
    return volume_id


def test_a_volume_of_a_backup(api: VolumeApi) -> None:
    backup_id = saved(api, made(api))
    body: dict[str, Any] = {"volume": {"backup_id": backup_id}}
    assert api.ask("POST", "/volumes", body)[0] == 400
    status, answer = api.ask("POST", "/volumes", body, version="3.47")
    assert (status, answer["volume"]["size"]) == (202, 1), answer
    (row,) = [one for one in api.world.rows(schema.volumes) if one.id == answer["volume"]["id"]]
    # As Cinder's, the answer doesn't say which.
    assert (row.backup_id, "backup_id" in answer["volume"]) == (backup_id, False)
    body = {"volume": {"backup_id": ids.new_uuid(), "size": 1}}
    assert api.ask("POST", "/volumes", body, version="3.47")[0] == 404


def test_what_is_refused(api: VolumeApi) -> None:
    volume_id = made(api)
    missing = ids.new_uuid()
    for body, status in (
        ({}, 400),
        ({"backup": {}}, 400),
        ({"backup": {"volume_id": "x"}}, 400),
        ({"backup": {"volume_id": missing}}, 404),
        ({"backup": {"volume_id": volume_id, "what": 1}}, 400),
        ({"backup": {"volume_id": volume_id, "metadata": {}}}, 400),
        ({"backup": {"volume_id": volume_id, "incremental": True}}, 400),
        ({"backup": {"volume_id": volume_id, "snapshot_id": missing}}, 404),
        ({"backup": {"volume_id": volume_id, "force": "maybe"}}, 400),
    ):
        assert api.ask("POST", "/backups", body)[0] == status, body
    assert not api.world.rows(schema.volume_backups)
    backup_id = saved(api, volume_id)
    path = f"/backups/{backup_id}"
    for method, where, asked in (
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", f"{path}/restore", {"restore": {}}),
        ("POST", f"{path}/restore", {"restore": {"volume_id": volume_id}}),
    ):
        assert api.ask(method, where, asked, token=OTHER)[0] == 404
    assert api.ask("POST", f"{path}/restore", {"restore": {"volume_id": missing}})[0] == 404
    assert api.ask("GET", f"{path}/export_record")[0] == 403
    assert api.ask("GET", f"{path}/export_record", token=auth.ADMIN)[0] == 400
    record = {"backup-record": {"backup_service": "s", "backup_url": "u"}}
    assert api.ask("POST", "/backups/import_record", record)[0] == 403
    assert api.ask("POST", "/backups/import_record", record, token=auth.ADMIN)[0] == 400
    reset = {"os-reset_status": {"status": "error"}}
    assert api.ask("POST", f"{path}/action", reset)[0] == 403
    wrong = {"os-reset_status": {"status": "creating"}}
    assert api.ask("POST", f"{path}/action", wrong, token=auth.ADMIN)[0] == 400
    assert api.ask("POST", f"{path}/action", reset, token=auth.ADMIN)[0] == 202
    assert shown(api, backup_id)["status"] == "error"
    force = {"os-force_delete": None}
    assert api.ask("POST", f"{path}/action", force)[0] == 403
    assert api.ask("POST", f"{path}/action", force, token=auth.ADMIN)[0] == 202
    assert shown(api, backup_id)["status"] == "deleting"
    again = api.ask("DELETE", path)
    assert message(again) == (400, "Invalid backup: Backup status must be available or error")


def test_over_the_quota_and_without_a_storage(api: VolumeApi) -> None:
    volume_id = made(api)
    api.world.conductor.cloud.conf.set_override("backups", 0, "quota")
    body = {"backup": {"volume_id": volume_id}}
    status, answer = api.ask("POST", "/backups", body)
    assert (status, list(answer)) == (413, ["overLimit"])
    api.world.conductor.cloud.conf.set_override("backups", 5, "quota")
    api.world.storages.remove(SAFE)
    api.world.beat()
    status, answer = api.ask("POST", "/backups", body)
    assert (status, list(answer)) == (503, ["serviceUnavailable"])
    assert show(api, volume_id)["status"] == "available"
