"""Locks of servers: who may set and lift them, whom they stop, and where they show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
LOCKED = f"Instance {uuid_of(1)} is locked"
OVERRIDE = (
    "Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed."
)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1))


def act(api: ComputeApi, body: Any, token: str = auth.MEMBER, version: str = "2.73") -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def shown(api: ComputeApi, version: str = "2.73") -> tuple[Any, ...]:
    server = api.get(SERVER, version=version).json["server"]
    return tuple(server.get(name, "-") for name in ("locked", "locked_reason"))


def test_what_each_version_shows(api: ComputeApi) -> None:
    assert shown(api) == (False, None)
    assert act(api, {"lock": {"locked_reason": "mine"}}).status_code == 202
    assert shown(api, "2.8") == ("-", "-")
    assert shown(api, "2.9") == (True, "-")
    assert shown(api, "2.73") == (True, "mine")
    answer = act(api, {"unlock": None})
    assert (answer.status_code, answer.content) == (202, b"")
    assert shown(api) == (False, None)
    assert act(api, {"unlock": None}).status_code == 202


def test_the_reason_came_with_2_73(api: ComputeApi) -> None:
    assert act(api, {"lock": {"locked_reason": "x"}}, version="2.72").status_code == 202
    assert shown(api) == (True, None)


def test_the_owner_locks_once(api: ComputeApi) -> None:
    act(api, {"lock": {"locked_reason": "first"}})
    assert act(api, {"lock": {"locked_reason": "second"}}).status_code == 202
    assert shown(api) == (True, "first")
    act(api, {"lock": None}, auth.ADMIN)
    assert shown(api) == (True, "first")
    act(api, {"lock": {"locked_reason": "repair"}}, auth.ADMIN)
    assert shown(api) == (True, "repair")


@pytest.mark.parametrize(
    ("locker", "other", "status"),
    [(auth.MEMBER, auth.ADMIN, 202), (auth.ADMIN, auth.MEMBER, 403)],
)
def test_another_s_lock(api: ComputeApi, locker: str, other: str, status: int) -> None:
    act(api, {"lock": None}, locker)
    answer = act(api, {"unlock": None}, other)
    assert answer.status_code == status
    if status == 403:
        assert answer.json["forbidden"]["message"] == OVERRIDE
    assert shown(api)[0] is (status == 403)
    assert act(api, {"unlock": None}, locker).status_code == 202
    assert shown(api)[0] is False


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "", None),
        ("POST", "/action", {"os-stop": None}),
        ("POST", "/action", {"os-start": None}),
        ("POST", "/action", {"reboot": {"type": "HARD"}}),
        ("POST", "/metadata", {"metadata": {"a": "1"}}),
        ("PUT", "/metadata", {"metadata": {"a": "1"}}),
        ("PUT", "/metadata/a", {"meta": {"a": "1"}}),
        ("DELETE", "/metadata/a", None),
    ],
)
def test_a_lock_stops_all_but_administrators(
    make: MakeApi, method: str, path: str, body: Any
) -> None:
    # Also what its state would refuse: the lock is looked at first.
    api = make(a_full_server(1, locked_by="admin", meta={"a": "0"}, task_state="rebooting"))
    answer = api.request(method, SERVER + path, body)
    assert answer.status_code == 409
    assert answer.json["conflictingRequest"]["message"] == LOCKED
    by_admin = api.request(method, SERVER + path, body, token=auth.ADMIN)
    assert by_admin.status_code != 409 or "while it is in" in by_admin.text


def test_a_lock_does_not_stop_what_nova_s_does_not(make: MakeApi) -> None:
    api = make(a_full_server(1, locked_by="admin"))
    assert api.request("PUT", SERVER, {"server": {"name": "new"}}).status_code == 200
    assert api.request("PUT", f"{SERVER}/tags/x", version="2.26").status_code == 201


def test_readers_and_others(api: ComputeApi) -> None:
    for body in ({"lock": None}, {"unlock": None}):
        assert act(api, body, auth.READER).status_code == 403
        assert act(api, body, auth.OTHER).status_code == 404
        assert act(api, body, auth.SYSTEM).status_code in {202, 403}


@pytest.mark.parametrize(
    "body",
    [
        {"lock": {"locked_reason": ""}},
        {"lock": {"locked_reason": "x" * 256}},
        {"lock": {"locked_reason": 1}},
        {"lock": {"locked_reason": None}},
        {"lock": {"other": "x"}},
        {"lock": []},
        {"lock": "x"},
        {"lock": None, "unlock": None},
        {"unlock": None, "more": 1},
        {},
        [],
        None,
    ],
)
def test_hostile_bodies(api: ComputeApi, body: Any) -> None:
    assert act(api, body).status_code == 400


def test_filter_and_sort(make: MakeApi) -> None:
    api = make(
        a_full_server(1, locked_by="owner"),
        a_full_server(2),
        a_full_server(3, locked_by="admin"),
        a_full_server(4, "other", locked_by="owner"),
    )

    def names(query: str, version: str = "2.73", **more: Any) -> list[str]:
        answer = api.get(f"/servers?{query}", version=version, **more)
        assert answer.status_code == 200, answer.text
        return [server["name"] for server in answer.json["servers"]]

    assert set(names("locked=True")) == {"server-1", "server-3"}
    assert names("locked=0") == ["server-2"]
    assert len(names("locked=True", "2.72")) == 3
    assert api.get("/servers?locked=x", version="2.73").status_code == 400
    assert len(names("locked=1&all_tenants=1", token=auth.ADMIN)) == 3
    assert names("sort_key=locked&sort_dir=asc")[0] == "server-2"
    assert names("sort_key=locked&sort_dir=desc")[-1] == "server-2"
    first = names("sort_key=locked&sort_dir=asc&limit=1")
    rest = names(f"sort_key=locked&sort_dir=asc&marker={uuid_of(2)}")
    assert [*first, *rest] == names("sort_key=locked&sort_dir=asc")
    assert names("sort_key=locked&sort_dir=asc", "2.72") == names("", "2.72")
