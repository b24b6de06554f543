"""`/storages` and `/hosts/{host}/tasks`: what nodes have and do, for administrators."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common.errors import Unavailable
from common.messages.questions import ListTasks
from common.messages.tasks import TaskFacts
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_host, a_service
from tests.fixtures.listings import counted
from tests.fixtures.volumes import SHARED_STORAGE
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

LOCAL = {**SHARED_STORAGE, "name": "local", "type": "dir", "shared": False, "content": ["iso"]}
AT = datetime.datetime(2026, 11, 29, 0, 30, tzinfo=datetime.UTC)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    idle = {**SHARED_STORAGE, "active": False}
    return make(
        a_host("n1", facts={"storages": [idle, LOCAL], "web_url": "https://pve:8006/#n1"}),
        a_host("n2", facts={"storages": [SHARED_STORAGE, LOCAL]}),
        a_host("off", facts={"storages": [LOCAL], "online": False}),
        a_service("n1"),
        a_service("n2"),
    )


def shown(api: ComputeApi, query: str = "") -> Any:
    answer = api.get(f"/storages{query}", token=auth.ADMIN)
    assert answer.status_code == 200, answer.text
    return answer.json


def test_a_shared_storage_is_listed_once(api: ComputeApi) -> None:
    with counted(api.reader) as count:
        found = shown(api)["storages"]
        assert count() == 1
    assert [(one["id"], one["hosts"], one["host"]) for one in found] == [
        ("c1/data", 2, "n2"),
        ("c1/n1/local", 1, "n1"),
        ("c1/n2/local", 1, "n2"),
    ]
    assert found[0] == {
        **{"id": "c1/data", "cluster": "c1", "name": "data", "type": "rbd"},
        **{"shared": True, "active": True, "content": ["images"], "total_gib": 1000},
        **{"available_gib": 900, "host": "n2", "hosts": 2},
    }


def test_storages_come_in_pages(api: ComputeApi) -> None:
    first = shown(api, "?limit=2")
    assert [one["id"] for one in first["storages"]] == ["c1/data", "c1/n1/local"]
    [link] = first["storages_links"]
    assert "marker=c1%2Fn1%2Flocal" in link["href"]
    last = shown(api, "?limit=2&marker=c1%2Fn1%2Flocal")
    assert [one["id"] for one in last["storages"]] == ["c1/n2/local"]
    assert "storages_links" not in last
    assert [one["id"] for one in shown(api, "?host=n1")["storages"]] == ["c1/data", "c1/n1/local"]
    assert shown(api, "?host=nothing") == shown(api, "?limit=0") == {"storages": []}
    for odd in ("marker=nothing", "limit=x", "x=1", "host=a&host=b"):
        assert api.get(f"/storages?{odd}", token=auth.ADMIN).status_code == 400, odd


def test_the_tasks_of_a_node(api: ComputeApi) -> None:
    ended = TaskFacts("UPID:1", "vzdump", "", "root@pam", AT, AT, "OK")
    runs = TaskFacts("UPID:2", "qmcreate", "100", "micronova@pve!agent", AT)
    api.conductor.agents.list_tasks.return_value = [runs, ended]
    answer = api.get("/hosts/pve1/tasks?limit=7", token=auth.ADMIN)
    assert answer.json["tasks"] == [
        {
            **{"id": "UPID:2", "kind": "qmcreate", "subject": "100", "result": None},
            **{"user": "micronova@pve!agent", "started_at": "2026-11-29T00:30:00Z"},
            "finished_at": None,
        },
        {
            **{"id": "UPID:1", "kind": "vzdump", "subject": "", "user": "root@pam"},
            **{"started_at": "2026-11-29T00:30:00Z", "finished_at": "2026-11-29T00:30:00Z"},
            "result": "OK",
        },
    ]
    [call] = api.conductor.agents.list_tasks.mock_calls
    assert call.args[0] == ListTasks("pve1", 7)
    api.get("/hosts/pve1/tasks?limit=5000", token=auth.ADMIN)
    assert api.conductor.agents.list_tasks.mock_calls[-1].args[0].limit == 100
    assert api.get("/hosts/nowhere/tasks", token=auth.ADMIN).status_code == 404
    api.conductor.agents.list_tasks.side_effect = Unavailable("No answer.")
    assert api.get("/hosts/pve1/tasks", token=auth.ADMIN).status_code == 503


def test_they_are_an_administrators(api: ComputeApi) -> None:
    for path in ("/storages", "/hosts/pve1/tasks"):
        for token in (auth.MEMBER, auth.READER, auth.OTHER):
            assert api.get(path, token=token).status_code == 403
    assert api.conductor.agents.list_tasks.mock_calls == []


def test_a_host_names_its_page_of_proxmox_ve(api: ComputeApi) -> None:
    found = api.get("/queues?name=n", token=auth.ADMIN).json["hosts"]
    urls = {one["host"]: one["web_url"] for one in found}
    assert (urls["n1"], urls["n2"]) == ("https://pve:8006/#n1", None)
