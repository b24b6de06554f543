"""``micronova server adopt`` and its kin, on a fake connection."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions
from openstack.compute.v2.server import Server

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

# the SDK warns of its own future whenever it makes a resource
pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")

UUID = "11111111-1111-1111-1111-111111111111"
BODY = {
    "id": UUID,
    "name": "db",
    "status": "ACTIVE",
    "flavor": {"original_name": "adopted-2-2048-10", "vcpus": 2},
    "OS-EXT-STS:task_state": None,
}


class Answer:
    """An HTTP answer as the SDK gives it."""

    def __init__(self, status: int = 202, body: Any = None) -> None:
        self.status_code, self.ok = status, status < 400
        self.headers = {"x-openstack-request-id": "req-1"}
        self._body = body

    def json(self) -> Any:
        return self._body


def a_cloud(**answers: Any) -> FakeConnection:
    found = SimpleNamespace(id=UUID, name="db")
    values: dict[str, Any] = {
        "post": Answer(body={"adoption": {"server_id": UUID}}),
        "find_server": found,
        "get_server": Server(**BODY),
        "find_flavor": SimpleNamespace(id="f1", name="big"),
        "server_actions": [],
    }
    identity = FakeProxy(find_project=SimpleNamespace(id="p7"), find_user=SimpleNamespace(id="u7"))
    return FakeConnection(FakeProxy(**(values | answers)), identity=identity)


def posted(connection: FakeConnection) -> list[tuple[str, Any]]:
    return [(args[0], kwargs["json"]) for args, kwargs in connection.compute.called("post")]


def test_adopt_asks_by_ids_and_shows_the_server() -> None:
    connection = a_cloud()
    words = ("--cluster", "c1", "--vmid", "500", "--project", "demo", "--user", "me")
    more = ("--name", "db", "--flavor", "big", "--wait", "-f", "json")
    ran = run(connection, "server", "adopt", *words, *more)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["id"] == UUID
    assert posted(connection) == [
        (
            "/adoptions",
            {
                "adoption": {
                    "cluster": "c1",
                    "vmid": 500,
                    "project_id": "p7",
                    "user_id": "u7",
                    "name": "db",
                    "flavor": "f1",
                }
            },
        )
    ]


def test_an_adoption_that_failed_says_why() -> None:
    operation = {
        "server": UUID,
        "action": "adopt",
        "request_id": "req-1",
        "started_at": "2026-01-01T00:00:00.000000",
        "message": "No room.",
        "events": [],
        "transitions": [],
    }
    story = {"explanation": {"operations": [operation]}}
    connection = a_cloud(get_server=exceptions.NotFoundException("gone"), get=Answer(200, story))
    words = ("--cluster", "c1", "--vmid", "500", "--project", "demo", "--wait")
    ran = run(connection, "server", "adopt", *words)
    assert ran.code == 1
    assert "VM 500 was not adopted, and is as it was: No room." in ran.err


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("release", "db"), {"release": None}),
        (("hold", "db"), {"hold": None}),
        (("release-hold", "db"), {"release-hold": None}),
        (("retry", "db"), {"retry": None}),
        (("forget", "db"), {"forget": {"force": False}}),
        (
            ("forget", "db", "--force", "--reason", "burnt"),
            {"forget": {"force": True, "reason": "burnt"}},
        ),
    ],
)
def test_actions(words: tuple[str, ...], body: dict[str, Any]) -> None:
    connection = a_cloud()
    ran = run(connection, "server", *words)
    assert ran.code == 0, ran.err
    assert posted(connection) == [(f"/servers/{UUID}/action", body)]


def test_force_needs_a_reason() -> None:
    ran = run(a_cloud(), "server", "forget", "db", "--force")
    assert ran.code == 1
    assert "--reason" in ran.err


def test_release_waits_until_it_is_gone() -> None:
    gone = a_cloud(get_server=exceptions.NotFoundException("gone"))
    assert run(gone, "server", "release", "db", "--wait").code == 0
    stays = run(a_cloud(), "server", "release", "db", "--wait")
    assert stays.code == 1
    assert "release failed" in stays.err


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        ("done", 0, "The VM of db carries its mark."),
        ("failed", 1, "The mark was not written: its SMBIOS UUID is not set."),
        ("running", 1, "It is not done yet: micronova explain req-1"),
    ],
)
def test_mark_says_what_became_of_it(state: str, code: int, text: str) -> None:
    operation = {"state": state, "message": "its SMBIOS UUID is not set."}
    story = Answer(200, {"explanation": {"operations": [operation]}})
    connection = a_cloud(get=story)
    ran = run(connection, "server", "mark", "db")
    assert (ran.code, posted(connection)) == (code, [(f"/servers/{UUID}/action", {"mark": None})])
    assert text in ran.err
