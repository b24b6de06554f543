"""`/os-migrations` and a server's live migrations: who sees which, in what form, in pages."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW, Row, counted
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

PATH = "/os-migrations"
LATEST = "2.104"
MANAGER = auth.token("boss", "demo", "manager", "member", "reader")


def migration_of(number: int) -> str:
    return ids.named("migration", str(number))


def a_migration(number: int, server: int = 1, project: str = "demo", **changes: Any) -> Row:
    moment = NOW + datetime.timedelta(minutes=number)
    values: dict[str, Any] = {
        "uuid": migration_of(number),
        "server_uuid": uuid_of(server),
        "project_id": project,
        "user_id": project,
        "type": "resize",
        "status": "finished",
        "source_host": "pve1",
        "source_node": "pve1",
        "dest_host": "pve2",
        "dest_node": "pve2",
        "dest_address": "10.0.0.2",
        "old_flavor_number": 1,
        "new_flavor_number": 2,
        "created_at": moment,
        "updated_at": moment,
    }
    return schema.migrations, values | changes


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """Two projects; the fourth is live and running, the sixth hidden."""
    return make(
        a_full_server(1),
        a_full_server(2, "other"),
        a_migration(1),
        a_migration(2, type="migration", status="confirmed", source_host="pve3"),
        a_migration(3, 2, "other"),
        a_migration(
            4, type="live-migration", status="running", memory_total=100, memory_remaining=40
        ),
        a_migration(5, type="live-migration", status="completed", user_id="somebody"),
        a_migration(6, hidden=True),
    )


def numbers(answer: Any) -> list[int]:
    known = {migration_of(number): number for number in range(1, 7)}
    return [known[one["uuid"]] for one in answer.json["migrations"]]


def ask(api: ComputeApi, query: str = "", token: str = auth.ADMIN, version: str = LATEST) -> Any:
    return api.get(f"{PATH}{query}", token=token, version=version)


def test_an_administrator_sees_all_of_them_newest_first(api: ComputeApi) -> None:
    with counted(api.reader) as statements:
        answer = ask(api)
        assert statements() == 1
    assert numbers(answer) == [5, 4, 3, 2, 1]
    assert answer.json["migrations"][-1] == {
        "id": 1,
        "uuid": migration_of(1),
        "instance_uuid": uuid_of(1),
        "migration_type": "resize",
        "status": "finished",
        "source_compute": "pve1",
        "source_node": "pve1",
        "dest_compute": "pve2",
        "dest_node": "pve2",
        "dest_host": "10.0.0.2",
        "old_instance_type_id": 1,
        "new_instance_type_id": 2,
        "user_id": "demo",
        "project_id": "demo",
        "created_at": "2026-01-31T12:01:00.123456",
        "updated_at": "2026-01-31T12:01:00.123456",
    }


def test_what_each_version_shows(api: ComputeApi) -> None:
    def keys(version: str) -> set[str]:
        every = ask(api, version=version).json["migrations"]
        assert len(every) == 5
        return {key for one in every for key in one}

    oldest = keys("2.1")
    assert {"migration_type", "links", "uuid", "user_id", "project_id"}.isdisjoint(oldest)
    assert keys("2.23") == oldest | {"migration_type", "links"}
    assert keys("2.59") == keys("2.23") | {"uuid"}
    assert keys("2.80") == keys("2.59") | {"user_id", "project_id"}
    assert [one["id"] for one in ask(api, version="2.58").json["migrations"]] == [1, 2, 3, 4, 5]


def test_only_live_migrations_in_progress_have_links(api: ComputeApi) -> None:
    linked = [one for one in ask(api).json["migrations"] if "links" in one]
    assert [one["id"] for one in linked] == [4]
    assert linked[0]["links"][0]["href"].endswith(f"/v2.1/servers/{uuid_of(1)}/migrations/4")


def test_a_manager_sees_those_of_the_own_project_without_hosts(api: ComputeApi) -> None:
    answer = ask(api, "?project_id=demo", MANAGER)
    assert numbers(answer) == [5, 4, 2, 1]
    hosts = ("source_compute", "source_node", "dest_compute", "dest_node", "dest_host")
    assert {one[name] for one in answer.json["migrations"] for name in hosts} == {None}


@pytest.mark.parametrize("query", ["", "?project_id=other", "?user_id=demo"])
def test_a_manager_sees_no_other_projects(api: ComputeApi, query: str) -> None:
    assert ask(api, query, MANAGER).status_code == 403


def test_members_see_none(api: ComputeApi) -> None:
    assert ask(api, "?project_id=demo", auth.MEMBER).status_code == 403
    assert api.get(f"/servers/{uuid_of(1)}/migrations", version=LATEST).status_code == 403


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=confirmed", [2]),
        ("host=pve3", [2]),
        ("host=pve2", [5, 4, 3, 2, 1]),
        ("source_compute=pve3", [2]),
        (f"instance_uuid={uuid_of(2)}", [3]),
        ("migration_type=live-migration", [5, 4]),
        ("user_id=somebody", [5]),
        ("project_id=other", [3]),
        ("hidden=1", []),
        ("hidden=0", [5, 4, 3, 2, 1]),
        ("changes-since=2026-01-31T12:04:00Z", [5, 4]),
        ("changes-before=2026-01-31T12:02:00Z", [1]),
        ("limit=0", []),
    ],
)
def test_filters(api: ComputeApi, query: str, found: list[int]) -> None:
    assert numbers(ask(api, f"?{query}")) == found


def test_times_are_no_filters_before_there_were_any(api: ComputeApi) -> None:
    answer = ask(api, "?changes-since=2027-01-01T00:00:00Z&other=1", version="2.58")
    assert len(answer.json["migrations"]) == 5


@pytest.mark.parametrize(
    ("query", "version"),
    [
        ("other=1", "2.59"),
        ("project_id=demo", "2.79"),
        ("changes-before=2026-01-31T12:00:00Z", "2.65"),
        ("limit=-1", LATEST),
        ("changes-since=yesterday", LATEST),
        ("changes-since=2026-01-02T00:00:00Z&changes-before=2026-01-01T00:00:00Z", LATEST),
        (f"marker={ids.named('migration', 'none')}", LATEST),
        (f"marker={migration_of(6)}", LATEST),
    ],
)
def test_refused_queries(api: ComputeApi, query: str, version: str) -> None:
    assert ask(api, f"?{query}", version=version).status_code == 400


def test_a_marker_of_another_project_is_an_unknown_one(api: ComputeApi) -> None:
    path = f"?project_id=demo&marker={migration_of(3)}"
    theirs = ask(api, path, MANAGER)
    assert theirs.status_code == 400
    unknown = ids.named("migration", "none")
    none = ask(api, f"?project_id=demo&marker={unknown}", MANAGER)
    assert none.text == theirs.text.replace(migration_of(3), unknown)


def test_pages_cost_one_query_each(api: ComputeApi) -> None:
    found: list[int] = []
    query = "?project_id=demo&limit=2"
    for _ in range(3):
        with counted(api.reader) as statements:
            answer = ask(api, query, MANAGER)
            page = numbers(answer)
            assert statements() == (1 if page else 2)
        found += page
        if "migrations_links" not in answer.json:
            break
        [link] = answer.json["migrations_links"]
        query = "?" + link["href"].split("?", 1)[1]
    assert found == [5, 4, 2, 1]


# --- of a server


def test_live_migrations_of_a_server(api: ComputeApi) -> None:
    path = f"/servers/{uuid_of(1)}/migrations"
    assert api.get(path, token=auth.ADMIN, version="2.22").status_code == 404
    [shown] = api.get(path, token=auth.ADMIN, version=LATEST).json["migrations"]
    assert shown == api.get(f"{path}/4", token=auth.ADMIN, version=LATEST).json["migration"]
    assert (shown["id"], shown["server_uuid"]) == (4, uuid_of(1))
    assert (shown["memory_total_bytes"], shown["memory_remaining_bytes"]) == (100, 40)
    assert (shown["disk_total_bytes"], shown["source_compute"]) == (None, "pve1")
    [seen] = api.get(path, token=MANAGER, version=LATEST).json["migrations"]
    assert (seen["id"], seen["source_compute"]) == (4, None)
    assert api.get(path, token=auth.OTHER, version=LATEST).status_code == 404
    assert api.get(f"{path}/4", token=MANAGER, version=LATEST).status_code == 403


@pytest.mark.parametrize(
    ("server", "number", "text"),
    [
        (1, "1", f"Migration 1 for server {uuid_of(1)} is not live-migration."),
        (1, "5", f"Live migration 5 for server {uuid_of(1)} is not in progress."),
        (2, "4", f"In-progress live migration 4 is not found for server {uuid_of(2)}."),
        (1, "x", f"In-progress live migration x is not found for server {uuid_of(1)}."),
    ],
)
def test_other_migrations_are_not_found(
    api: ComputeApi, server: int, number: str, text: str
) -> None:
    path = f"/servers/{uuid_of(server)}/migrations/{number}"
    answer = api.get(path, token=auth.ADMIN, version=LATEST)
    assert answer.status_code == 404
    assert answer.json["itemNotFound"]["message"] == text
