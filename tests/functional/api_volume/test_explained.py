"""``/explanations`` of volumes, their snapshots and transfers: what was done, and why not."""

from __future__ import annotations

from typing import Any

from common import ids
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_messages import failed_growth, failed_snapshot
from tests.functional.api_volume.test_snapshots import made
from tests.functional.api_volume.test_transfers import accept, offered
from tests.functional.api_volume.test_volumes import OTHER


def actions(story: Any) -> list[tuple[str, str]]:
    return [(one["action"], one["state"]) for one in story["operations"]]


def test_a_volume(api: VolumeApi) -> None:
    volume_id = failed_growth(api)
    story = api.explain(volume_id)
    *first, parking = actions(story)
    assert first == [("create-volume", "done"), ("extend-volume", "failed")]
    assert parking[0] == "park-volume"
    assert story["volume"]["status"] == "error_extending"
    assert "host" not in story["volume"]
    (fault,) = story["operations"][1]["faults"]
    assert "upid" not in fault
    assert "server" not in fault["message"]
    assert "volume" in fault["message"]
    operator = api.explain(volume_id, auth.ADMIN)
    assert (operator["volume"]["host"], operator["volume"]["storage"]) == ("pve1", "data")
    (fault,) = operator["operations"][1]["faults"]
    assert (fault["upid"], fault["message"]) == ("UPID:pve1:1", "Node pve1 refused VM 100.")
    resource = {"type": "volume", "id": volume_id}
    assert [one["resource"] for one in operator["operations"]] == [resource] * 3
    assert api.explain(volume_id, OTHER) is None


def test_a_snapshot(api: VolumeApi) -> None:
    snapshot_id = failed_snapshot(api)
    story = api.explain(snapshot_id)
    assert ("create-snapshot", "failed") in actions(story)
    assert (story["snapshot"]["status"], story["snapshot"]["size_gib"]) == ("error", 1)
    assert api.explain(snapshot_id, OTHER) is None


def test_a_transfer(api: VolumeApi) -> None:
    volume_id = made(api)
    one = offered(api, volume_id, name="for you")
    assert api.explain(one["id"])["transfer"]["status"] == "offered"
    assert api.explain(one["id"], OTHER) is None
    assert accept(api, one)[0] == 202
    # Each of both reads what it did; administrators read all.
    given, got = api.explain(one["id"]), api.explain(one["id"], OTHER)
    assert actions(given) == [("create-volume", "done"), ("create-transfer", "done")]
    assert actions(got) == [("accept-transfer", "done")]
    assert given["transfer"] == got["transfer"]
    assert (got["transfer"]["status"], got["transfer"]["with_snapshots"]) == ("accepted", True)
    assert got["transfer"]["destination_project_id"] == "other"
    assert len(actions(api.explain(volume_id, auth.ADMIN))) == 3
    assert one["auth_key"] not in str(api.explain(one["id"], auth.ADMIN))


def test_what_is_not_known(api: VolumeApi) -> None:
    assert api.explain(ids.new_uuid(), auth.ADMIN) is None
