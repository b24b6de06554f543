"""`/volume-transfers` over HTTP: a volume is given to who has the key, and counts as theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_snapshots import made, shown, taken
from tests.functional.api_volume.test_volumes import OTHER, message, show

NEW, OLD = "/volume-transfers", "/os-volume-transfer"


def offered(
    api: VolumeApi, volume_id: str, path: str = NEW, token: str = auth.MEMBER, **asked: Any
) -> Any:
    body = {"transfer": {"volume_id": volume_id, **asked}}
    status, answer = api.ask("POST", path, body, version="3.57", token=token)
    assert status == 202, answer
    return answer["transfer"]


def accept(api: VolumeApi, one: Any, key: Any = None, **more: Any) -> Any:
    body = {"accept": {"auth_key": one["auth_key"] if key is None else key}}
    return api.ask("POST", f"{NEW}/{one['id']}/accept", body, **{"token": OTHER, **more})


@contextmanager
def limits(api: VolumeApi, project: str, **wanted: int) -> Iterator[None]:
    path, admin = f"/os-quota-sets/{project}", {"token": auth.ADMIN}
    assert api.ask("PUT", path, {"quota_set": wanted}, **admin)[0] == 200
    yield
    assert api.ask("DELETE", path, **admin)[0] == 200


def used(api: VolumeApi, project: str) -> dict[str, int]:
    path = f"/os-quota-sets/{project}?usage=true"
    _, body = api.ask("GET", path, token=auth.ADMIN)
    found = body["quota_set"]
    return {name: one["in_use"] for name, one in found.items() if name != "id" and one["in_use"]}


@pytest.mark.parametrize("path", [NEW, OLD])
def test_a_volume_is_offered_and_taken(api: VolumeApi, path: str) -> None:
    volume_id = made(api, name="data", volume_type="data")
    one = offered(api, volume_id, path, name=" for you ")
    assert (one["volume_id"], one["name"], len(one["auth_key"])) == (volume_id, "for you", 16)
    assert (one["no_snapshots"], one["accepted"]) == (False, False)
    assert (one["source_project_id"], one["destination_project_id"]) == ("demo", None)
    assert show(api, volume_id)["status"] == "awaiting-transfer"

    status, body = api.ask("GET", f"{path}/{one['id']}", version="3.57")
    assert (status, body["transfer"]) == (200, {k: v for k, v in one.items() if k != "auth_key"})
    assert set(api.ask("GET", f"{path}/{one['id']}")[1]["transfer"]) == {
        *("id", "created_at", "name", "volume_id", "links")
    }
    (brief,) = api.ask("GET", path)[1]["transfers"]
    assert set(brief) == {"id", "volume_id", "name", "links"}
    (long,) = api.ask("GET", f"{path}/detail", version="3.57")[1]["transfers"]
    assert long == body["transfer"]

    # The other project sees neither the offer nor the volume before it accepts.
    assert api.ask("GET", f"{path}/{one['id']}", token=OTHER)[0] == 404
    assert api.ask("GET", f"{path}/detail", token=OTHER)[1] == {"transfers": []}
    status, body = accept(api, one)
    assert (status, body["transfer"]["volume_id"]) == (202, volume_id)
    assert set(body["transfer"]) == {"id", "volume_id", "name", "links"}
    theirs = show(api, volume_id, token=OTHER)
    assert (theirs["status"], theirs["user_id"]) == ("available", "other")
    assert theirs["os-vol-tenant-attr:tenant_id"] == "other"
    assert api.ask("GET", f"/volumes/{volume_id}")[0] == 404
    for token in (auth.MEMBER, OTHER):
        assert api.ask("GET", f"{path}/{one['id']}", token=token)[0] == 404
        assert api.ask("GET", path, token=token)[1] == {"transfers": []}
    assert message(accept(api, one))[0] == 404
    assert used(api, "demo") == {}
    assert used(api, "other") == {
        **{"volumes": 1, "gigabytes": 1, "volumes_data": 1, "gigabytes_data": 1}
    }


def test_the_key_is_kept_nowhere(api: VolumeApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    volume_id = made(api)
    one = offered(api, volume_id)
    (row,) = api.world.rows(schema.volume_transfers)
    assert one["auth_key"] not in str(row)
    assert (len(row.salt), len(row.key_hash)) == (32, 64)
    status, text = message(accept(api, one, "0123456789abcdef"))
    assert (status, text) == (
        400,
        f"Invalid auth key: Attempt to transfer {one['id']} with invalid auth key.",
    )
    assert message(accept(api, one, 17))[0] == 400
    assert show(api, volume_id)["status"] == "awaiting-transfer"
    assert accept(api, one)[0] == 202
    (row,) = api.world.rows(schema.volume_transfers)
    assert (row.salt, row.key_hash, row.accepted) == ("", "", True)
    assert (row.source_project_id, row.destination_project_id) == ("demo", "other")
    ledger = [one._mapping for one in api.world.rows(schema.operations)]
    assert [(o["action"], o["project_id"], o["state"]) for o in ledger][1:] == [
        ("create-transfer", "demo", "done"),
        ("accept-transfer", "other", "done"),
    ]
    assert one["auth_key"] not in caplog.text + str(ledger)


def test_what_is_offered_is_left_alone(api: VolumeApi) -> None:
    volume_id = made(api)
    one = offered(api, volume_id)
    item = f"/volumes/{volume_id}"
    refused = [
        ("DELETE", item, None),
        ("POST", f"{item}/action", {"os-extend": {"new_size": 2}}),
        ("POST", f"{item}/action", {"os-reserve": {}}),
        ("POST", "/snapshots", {"snapshot": {"volume_id": volume_id}}),
        ("POST", "/volumes", {"volume": {"source_volid": volume_id}}),
        ("POST", NEW, {"transfer": {"volume_id": volume_id}}),
    ]
    for method, path, body in refused:
        assert message(api.ask(method, path, body))[0] == 400, path
    assert show(api, volume_id)["status"] == "awaiting-transfer"
    # Its owner gets it back.
    assert api.ask("DELETE", f"{NEW}/{one['id']}", token=OTHER)[0] == 404
    assert api.ask("DELETE", f"{NEW}/{one['id']}")[0] == 202
    assert show(api, volume_id)["status"] == "available"
    assert message(accept(api, one)) == (404, f"Transfer {one['id']} could not be found.")
    assert api.ask("DELETE", f"{NEW}/{one['id']}")[0] == 404
    assert api.ask("POST", f"{item}/action", {"os-extend": {"new_size": 2}})[0] == 202


def test_an_administrator_unlocks_what_is_offered(api: VolumeApi) -> None:
    volume_id = made(api)
    one = offered(api, volume_id)
    reset = {"os-reset_status": {"status": "available"}}
    admin = {"token": auth.ADMIN}
    assert api.ask("POST", f"/volumes/{volume_id}/action", reset, **admin)[0] == 202
    assert message(accept(api, one))[0] == 404
    assert api.ask("GET", NEW)[1] == {"transfers": []}
    two = offered(api, volume_id)
    forced = f"/volumes/{volume_id}?force=true"
    assert api.ask("DELETE", forced, version="3.23", **admin)[0] == 202
    assert message(accept(api, two))[0] == 400
    assert api.ask("DELETE", f"{NEW}/{two['id']}")[0] == 202
    assert show(api, volume_id)["status"] == "deleting"


def test_what_may_be_offered(api: VolumeApi) -> None:
    volume_id = made(api)
    missing = ids.new_uuid()
    for asked, status in (
        ({"volume_id": missing}, 404),
        ({"volume_id": "x"}, 400),
        ({"volume_id": volume_id, "name": "x" * 256}, 400),
        ({"volume_id": volume_id, "name": "  "}, 400),
        ({"volume_id": volume_id, "no_snapshots": True}, 400),
        ({}, 400),
    ):
        assert api.ask("POST", NEW, {"transfer": asked})[0] == status, asked
    body = {"transfer": {"volume_id": volume_id}}
    assert api.ask("POST", NEW, body, token=OTHER)[0] == 404
    assert api.ask("POST", NEW, body, token=auth.READER)[0] == 403
    with_snapshots = {"transfer": {"volume_id": volume_id, "no_snapshots": True}}
    assert api.ask("POST", OLD, with_snapshots, version="3.55")[0] == 400
    status, body = api.ask("POST", "/snapshots", {"snapshot": {"volume_id": volume_id}})
    assert status == 202
    creating = body["snapshot"]["id"]
    answer = api.ask("POST", NEW, {"transfer": {"volume_id": volume_id}})
    assert message(answer) == (
        400,
        f"Invalid snapshot: snapshot: {creating} status must be available",
    )
    for path in (f"{NEW}/{missing}", f"{OLD}/{missing}"):
        assert api.ask("GET", path)[0] == api.ask("DELETE", path)[0] == 404
    assert accept(api, {"id": missing, "auth_key": "x"})[0] == 404
    assert api.ask("POST", f"{NEW}/{missing}/accept", {"accept": {}})[0] == 400


def test_snapshots_go_along(api: VolumeApi) -> None:
    volume_id = made(api, volume_type="data")
    snapshot_id = taken(api, volume_id)
    one = offered(api, volume_id)
    assert accept(api, one)[0] == 202
    theirs = shown(api, snapshot_id, token=OTHER, version="3.41")
    assert theirs["os-extended-snapshot-attributes:project_id"] == theirs["user_id"] == "other"
    assert api.ask("GET", f"/snapshots/{snapshot_id}")[0] == 404
    assert used(api, "demo") == {}
    assert used(api, "other") == {
        **{"volumes": 1, "snapshots": 1, "gigabytes": 2},
        **{"volumes_data": 1, "snapshots_data": 1, "gigabytes_data": 2},
    }


def test_snapshots_stay(api: VolumeApi) -> None:
    volume_id = made(api)
    snapshot_id = taken(api, volume_id)
    one = offered(api, volume_id, no_snapshots=True)
    assert one["no_snapshots"] is True
    assert accept(api, one)[0] == 202
    assert shown(api, snapshot_id)["volume_id"] == volume_id
    assert api.ask("GET", f"/snapshots/{snapshot_id}", token=OTHER)[0] == 404
    assert used(api, "demo")["gigabytes"] == used(api, "other")["gigabytes"] == 1
    # Nobody deletes, or reverts to, what isn't theirs.
    for path in (f"/volumes/{volume_id}", f"/volumes/{volume_id}?cascade=true"):
        status, text = message(api.ask("DELETE", path, token=OTHER))
        assert (status, "disassociated from snapshots" in text) == (400, True)
    revert = {"revert": {"snapshot_id": snapshot_id}}
    action = f"/volumes/{volume_id}/action"
    assert api.ask("POST", action, revert, version="3.40", token=OTHER)[0] == 404
    assert api.ask("DELETE", f"/snapshots/{snapshot_id}")[0] == 202


def test_a_giver_gives_only_snapshots_of_its_own(api: VolumeApi) -> None:
    volume_id = made(api)
    kept = taken(api, volume_id)
    assert accept(api, offered(api, volume_id, no_snapshots=True))[0] == 202
    given = taken(api, volume_id, 2, token=OTHER)
    # What is wrong with a snapshot that is not offered doesn't matter.
    reset = {"os-reset_status": {"status": "error"}}
    assert api.ask("POST", f"/snapshots/{kept}/action", reset, token=auth.ADMIN)[0] == 202
    third = auth.token("third", "third", "member", "reader")
    assert accept(api, offered(api, volume_id, token=OTHER), token=third)[0] == 202
    assert shown(api, kept, token=auth.READER)["status"] == "error"
    assert api.ask("GET", f"/snapshots/{kept}", token=third)[0] == 404
    assert shown(api, given, token=third)["volume_id"] == volume_id
    assert used(api, "demo") == {"snapshots": 1, "gigabytes": 1}
    assert used(api, "third") == {"volumes": 1, "snapshots": 1, "gigabytes": 2}


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"volumes": 0}, "Maximum number of volumes allowed (0) exceeded for quota 'volumes'."),
        (
            {"volumes_data": 0},
            "Maximum number of volumes allowed (0) exceeded for quota 'volumes_data'.",
        ),
        ({"gigabytes": 2}, "Requested volume or snapshot exceeds allowed gigabytes quota."),
        ({"gigabytes_data": 3}, "Requested volume or snapshot exceeds allowed gigabytes_data"),
        ({"snapshots": 0}, "Maximum number of snapshots allowed (0) exceeded"),
        ({"snapshots_data": 0}, "Maximum number of snapshots allowed (0) exceeded"),
        (
            {"per_volume_gigabytes": 1},
            "Requested volume size 2G is larger than maximum allowed limit 1G.",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_the_receiver_must_be_able_to_have_it(
    api: VolumeApi, limit: dict[str, int], words: str
) -> None:
    volume_id = made(api, size=2, volume_type="data")
    snapshot_id = taken(api, volume_id)
    one = offered(api, volume_id)
    with limits(api, "other", **limit):
        status, text = message(accept(api, one))
        assert (status, text[: len(words)]) == (413, words)
    # Nothing has changed, and it succeeds once there is quota.
    assert show(api, volume_id)["status"] == "awaiting-transfer"
    assert shown(api, snapshot_id)["status"] == "available"
    assert used(api, "other") == {}
    with limits(api, "other", volumes=1, snapshots=1, gigabytes=4, gigabytes_data=4):
        assert accept(api, one)[0] == 202


def test_pages(api: VolumeApi) -> None:
    names = ["a", "b", "c"]
    known = [offered(api, made(api), name=name)["id"] for name in names]

    def listed(query: str, version: str = "3.59") -> list[str]:
        status, body = api.ask("GET", f"{NEW}/detail{query}", version=version)
        assert status == 200, body
        return [one["name"] for one in body["transfers"]]

    assert listed("", "3.0") == names
    assert listed("") == names[::-1]
    assert listed("?sort=name:asc&limit=2") == ["a", "b"]
    assert listed(f"?sort=name:asc&limit=2&marker={known[1]}") == ["c"]
    assert listed("?offset=1&limit=1") == ["b"]
    assert listed("?name=b") == ["b"]
    body = api.ask("GET", f"{NEW}?limit=2", version="3.59")[1]
    assert body["transfers_links"][0]["rel"] == "next"
    assert api.ask("GET", f"{NEW}?sort_key=salt", version="3.59")[0] == 400
    assert api.ask("GET", f"{NEW}?marker={ids.new_uuid()}", version="3.59")[0] == 404
    status, body = api.ask("GET", f"{NEW}?all_tenants=1", token=auth.ADMIN)
    assert (status, len(body["transfers"])) == (200, 3)
    assert api.ask("GET", NEW, token=auth.ADMIN)[1] == {"transfers": []}
