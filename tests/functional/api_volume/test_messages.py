"""`/messages` over HTTP: why something failed, numbered as Cinder numbers it."""

from __future__ import annotations

from typing import Any

from common import ids
from common.messages.commands import GrowVolume, SnapVolume
from common.messages.reports import Category, Failure
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_snapshots import made, sent
from tests.functional.api_volume.test_volumes import OTHER, make, message, show
from tests.functional.waiting import eventually

#: nothing waits for it, and nothing else is tried
BROKEN = Failure(Category.PROTECTED, "Node pve1 refused VM 100.", upid="UPID:pve1:1")


def listed(api: VolumeApi, query: str = "", version: str = "3.5", **more: Any) -> list[Any]:
    status, body = api.ask("GET", f"/messages{query}", version=version, **more)
    assert status == 200, body
    return list(body["messages"])


def failed_growth(api: VolumeApi) -> str:
    volume_id = made(api)
    extend = {"os-extend": {"new_size": 2}}
    assert api.ask("POST", f"/volumes/{volume_id}/action", extend)[0] == 202
    api.world.answer(sent(api, GrowVolume, volume_id), ok=False, failure=BROKEN)
    eventually(lambda: listed(api, f"?resource_uuid={volume_id}"))
    return volume_id


def failed_snapshot(api: VolumeApi) -> str:
    volume_id = made(api)
    asked = {"snapshot": {"volume_id": volume_id}}
    snapshot_id = api.ask("POST", "/snapshots", asked)[1]["snapshot"]["id"]
    api.world.answer(sent(api, SnapVolume, volume_id), ok=False, failure=BROKEN)
    eventually(lambda: listed(api, f"?resource_uuid={snapshot_id}"))
    return str(snapshot_id)


def without_a_place(api: VolumeApi, count: int = 1) -> list[str]:
    """Make volumes of a type that no storage has; each fails with one message."""
    asked = {"volume_type": {"name": "far", "extra_specs": {"volume_backend_name": "moon"}}}
    assert api.ask("POST", "/types", asked, token=auth.ADMIN)[0] == 200
    return [make(api, volume_type="far") for _ in range(count)]


def test_a_volume_without_a_place(api: VolumeApi) -> None:
    (volume_id,) = without_a_place(api)
    assert show(api, volume_id)["status"] == "error"
    (one,) = listed(api)
    assert (one["resource_type"], one["resource_uuid"]) == ("VOLUME", volume_id)
    assert (one["event_id"], one["message_level"]) == ("VOLUME_VOLUME_001_003", "ERROR")
    assert one["user_message"].startswith("schedule allocate volume: No valid backend was found")
    (operation,) = api.world.rows(schema.operations)
    assert one["request_id"] == operation.request_id
    assert one["guaranteed_until"] > one["created_at"]
    assert one["links"][0]["href"].endswith(f"/messages/{one['id']}")


def test_each_is_numbered_as_cinder_does(api: VolumeApi) -> None:
    volume_id, snapshot_id = failed_growth(api), failed_snapshot(api)
    grown, taken = listed(api, "?sort=created_at:asc")
    assert (grown["event_id"], grown["resource_uuid"]) == ("VOLUME_VOLUME_007_010", volume_id)
    assert taken["event_id"] == "VOLUME_VOLUME_SNAPSHOT_009_013"
    assert (taken["resource_type"], taken["resource_uuid"]) == ("VOLUME_SNAPSHOT", snapshot_id)
    # Hosts and tasks are administrators' matter.
    assert grown["user_message"] == "extend volume: It is protected from removal."
    path = f"/messages/{grown['id']}"
    text = api.ask("GET", path, version="3.3", token=auth.ADMIN)[1]["message"]["user_message"]
    assert text == "extend volume: Node pve1 refused VM 100."


def test_filters_and_pages(api: VolumeApi) -> None:
    volume_ids = without_a_place(api, 3)
    first, second, third = listed(api, "?sort=created_at:asc")
    assert [one["resource_uuid"] for one in (first, second, third)] == volume_ids
    assert listed(api) == [third, second, first]
    assert listed(api, "?limit=2") == [third, second]
    assert listed(api, f"?limit=2&marker={second['id']}") == [first]
    assert listed(api, "?offset=1&limit=1") == [second]
    assert listed(api, "?sort_key=id&sort_dir=asc&limit=1") == [first]
    for name in ("resource_uuid", "request_id"):
        assert listed(api, f"?{name}={second[name]}") == [second]
    for name in ("resource_type", "event_id", "message_level"):
        assert len(listed(api, f"?{name}={second[name]}")) == 3
        assert listed(api, f"?{name}=X") == []
    body = api.ask("GET", "/messages?limit=2", version="3.5")[1]
    assert body["messages_links"][0]["href"].endswith(f"marker={second['id']}")
    # Before 3.5 there are neither.
    assert len(listed(api, "?limit=1&resource_uuid=x", "3.3")) == 3
    assert api.ask("GET", "/messages?sort=plan", version="3.5")[0] == 400
    for marker in (ids.new_uuid(), "x", ids.numbered("volume_message", 2**61)):
        assert api.ask("GET", f"/messages?marker={marker}", version="3.5")[0] == 404


def test_a_message_is_deleted_once(api: VolumeApi) -> None:
    without_a_place(api, 2)
    one, other = listed(api)
    path = f"/messages/{one['id']}"
    assert api.ask("DELETE", path)[0] == 404
    for token, status in ((OTHER, 404), (auth.READER, 403), (auth.MEMBER, 204)):
        assert api.ask("DELETE", path, version="3.3", token=token)[0] == status
    assert message(api.ask("GET", path, version="3.3")) == (
        404,
        f"Message {one['id']} could not be found.",
    )
    assert api.ask("DELETE", path, version="3.3")[0] == 404
    assert listed(api) == [other]
    assert listed(api, token=OTHER) == []
    for unknown in ("x", ids.new_uuid(), ids.numbered("volume_message", 2**61)):
        for method in ("GET", "DELETE"):
            assert api.ask(method, f"/messages/{unknown}", version="3.3")[0] == 404
    # The faults that they are about are not deleted.
    assert len(api.world.rows(schema.faults)) == 2
