"""Host aggregates: who may, what they show, and the zones that they make of hosts."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, a_service
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """pve1 with a server and pve2 without, both in az1 by their own word; an image."""
    return make(a_service("pve2"), a_host("pve2"), a_full_server(1))


class Aggregates:
    """Asks as the administrator."""

    def __init__(self, api: ComputeApi, version: str = "2.1") -> None:
        self._api, self._version = api, version

    def ask(self, method: str, path: str = "", body: Any = None) -> Any:
        return self._api.request(
            method, f"/os-aggregates{path}", body, version=self._version, token=auth.ADMIN
        )

    def create(self, name: str, zone: str | None = None) -> Any:
        wanted = {"name": name} | ({"availability_zone": zone} if zone else {})
        return self.ask("POST", "", {"aggregate": wanted})

    def act(self, number: int, **action: Any) -> Any:
        return self.ask("POST", f"/{number}/action", action)

    def add(self, number: int, host: str) -> Any:
        return self.act(number, add_host={"host": host})

    def remove(self, number: int, host: str) -> Any:
        return self.act(number, remove_host={"host": host})

    def describe(self, number: int, **metadata: str | None) -> Any:
        return self.act(number, set_metadata={"metadata": metadata})


@pytest.fixture
def aggregates(api: ComputeApi) -> Aggregates:
    return Aggregates(api)


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    [fault] = answer.json.values()
    return str(fault["message"])


def test_only_administrators(api: ComputeApi, aggregates: Aggregates) -> None:
    aggregates.create("a")
    body = {"aggregate": {"name": "b"}}
    for token in (auth.READER, auth.MEMBER, auth.OTHER):
        for method, path, sent in (
            ("GET", "", None),
            ("POST", "", body),
            ("GET", "/1", None),
            ("PUT", "/1", body),
            ("DELETE", "/1", None),
            ("POST", "/1/action", {"add_host": {"host": "pve2"}}),
            ("POST", "/1/action", {"remove_host": {"host": "pve2"}}),
            ("POST", "/1/action", {"set_metadata": {"metadata": {}}}),
        ):
            answer = api.request(method, f"/os-aggregates{path}", sent, token=token)
            assert answer.status_code == 403, (method, path)


def test_life_of_an_aggregate(api: ComputeApi) -> None:
    aggregates = Aggregates(api, "2.41")
    made = aggregates.create("fast", "az2").json["aggregate"]
    assert made.keys() == {
        *("id", "name", "availability_zone", "uuid"),
        *("created_at", "updated_at", "deleted", "deleted_at"),
    }
    number = made["id"]
    assert (made["availability_zone"], made["updated_at"], made["deleted"]) == ("az2", None, False)
    assert ids.is_uuid(made["uuid"])
    assert aggregates.add(number, "pve2").json["aggregate"]["hosts"] == ["pve2"]
    described = aggregates.describe(number, ssd="true", rack="7").json["aggregate"]
    assert described["metadata"] == {"availability_zone": "az2", "ssd": "true", "rack": "7"}
    assert described["updated_at"] is not None
    described = aggregates.describe(number, rack=None, none=None).json["aggregate"]
    assert described["metadata"] == {"availability_zone": "az2", "ssd": "true"}
    renamed = aggregates.ask("PUT", f"/{number}", {"aggregate": {"name": " slow "}}).json
    assert renamed["aggregate"]["name"] == "slow"
    assert aggregates.ask("GET", f"/{number}").json == renamed
    assert aggregates.ask("GET").json == {"aggregates": [renamed["aggregate"]]}
    assert message(aggregates.ask("DELETE", f"/{number}"), 400) == (
        f"Cannot remove host from aggregate {number}. Reason: Host aggregate is not empty."
    )
    assert aggregates.remove(number, "pve2").json["aggregate"]["hosts"] == []
    gone = aggregates.ask("DELETE", f"/{number}")
    assert (gone.status_code, gone.content) == (200, b"")
    assert message(aggregates.ask("GET", f"/{number}"), 404) == (
        f"Aggregate {number} could not be found."
    )


def test_before_2_41_there_is_no_uuid(aggregates: Aggregates) -> None:
    made = aggregates.create("a").json["aggregate"]
    assert "uuid" not in made
    assert "uuid" not in aggregates.ask("GET", f"/{made['id']}").json["aggregate"]


def test_what_is_not_well_formed(api: ComputeApi, aggregates: Aggregates) -> None:
    aggregates.create("a")
    for body in (
        {"aggregate": {}},
        {"aggregate": {"name": " a"}},
        {"aggregate": {"name": ""}},
        {"aggregate": {"name": "b", "availability_zone": "a:b"}},
        {"aggregate": {"name": "b", "metadata": {}}},
        {"name": "b"},
    ):
        assert aggregates.ask("POST", "", body).status_code == 400, body
    for body in ({"aggregate": {}}, {"aggregate": {"name": "  "}}):
        assert aggregates.ask("PUT", "/1", body).status_code == 400, body
    for action in (
        {"add_host": {}},
        {"add_host": {"host": "a b"}},
        {"set_metadata": {"metadata": {"a": 1}}},
        {"set_metadata": {"metadata": {"a": "x" * 256}}},
        {"explode": {}},
    ):
        assert aggregates.act(1, **action).status_code == 400, action
    assert message(aggregates.ask("GET", "/x"), 400) == (
        "Invalid input received: id must be an integer"
    )
    for number in ("0", "-1", "99", "9" * 40):
        assert aggregates.ask("GET", f"/{number}").status_code == 404
    strict = Aggregates(api, "2.102")
    assert aggregates.ask("GET", "?x=1").status_code == 200
    assert strict.ask("GET", "?x=1").status_code == 400
    assert strict.ask("GET", "/1?x=1").status_code == 400


def test_names_are_unique(aggregates: Aggregates) -> None:
    aggregates.create("a")
    aggregates.create("b")
    assert message(aggregates.create("a"), 409) == "Aggregate a already exists."
    taken = aggregates.ask("PUT", "/2", {"aggregate": {"name": "a"}})
    assert message(taken, 409) == "Aggregate a already exists."
    assert aggregates.ask("PUT", "/2", {"aggregate": {"name": "b"}}).status_code == 200


def test_hosts_that_are_not_there(aggregates: Aggregates) -> None:
    aggregates.create("a")
    assert message(aggregates.add(1, "mars"), 404) == "Compute host mars could not be found."
    assert message(aggregates.add(9, "pve1"), 404) == "Aggregate 9 could not be found."
    aggregates.add(1, "pve1")
    assert message(aggregates.add(1, "pve1"), 409) == "Aggregate 1 already has host pve1."
    for host in ("pve2", "mars"):
        assert message(aggregates.remove(1, host), 404) == (
            f"Cannot remove host {host} in aggregate 1"
        )


def test_a_host_is_in_one_zone(aggregates: Aggregates) -> None:
    aggregates.create("a", "az2")
    aggregates.create("b", "az3")
    aggregates.create("c")
    aggregates.add(1, "pve2")
    reason = "Reason: One or more hosts already in availability zone(s) ['az2']."
    refused = message(aggregates.add(2, "pve2"), 409)
    assert refused == f"Cannot add host to aggregate 2. {reason}"
    assert aggregates.add(3, "pve2").status_code == 200
    refused = message(aggregates.describe(3, availability_zone="az3"), 400)
    assert refused == f"Cannot update metadata of aggregate 3. {reason}"
    body = {"aggregate": {"availability_zone": "az3"}}
    assert message(aggregates.ask("PUT", "/3", body), 400) == (
        f"Cannot update aggregate 3. {reason}"
    )
    assert aggregates.describe(3, availability_zone="az2").status_code == 200
    for answer in (
        aggregates.describe(3, availability_zone=None),
        aggregates.ask("PUT", "/3", {"aggregate": {"availability_zone": None}}),
    ):
        assert "Aggregate c does not support empty named availability zone." in message(
            answer, 400
        )


def test_a_host_with_servers_stays_in_its_zone(aggregates: Aggregates) -> None:
    aggregates.create("a", "az2")
    aggregates.create("same", "az1")
    aggregates.create("none")
    refused = message(aggregates.add(1, "pve1"), 409)
    assert refused.startswith("Cannot add host to aggregate 1. Reason: The host cannot be added")
    assert "would change from 'az1' to 'az2' but the host already has 1 instance(s)." in refused
    assert aggregates.add(2, "pve1").status_code == 200
    assert aggregates.add(3, "pve1").status_code == 200
    refused = message(aggregates.describe(2, availability_zone="az9"), 400)
    assert refused == (
        "Cannot update metadata of aggregate 2. "
        "Reason: One or more hosts contain instances in this zone."
    )
    # As the host says az1 of itself, nothing changes for its server.
    assert aggregates.remove(2, "pve1").status_code == 200


def test_a_host_with_servers_stays_with_the_zone_that_an_aggregate_made(
    api: ComputeApi, aggregates: Aggregates
) -> None:
    aggregates.create("a", "az2")
    aggregates.add(1, "pve2")
    api.add(a_full_server(2, host="pve2"))
    refused = message(aggregates.remove(1, "pve2"), 409)
    assert refused.startswith("Cannot remove host from aggregate 1. Reason: The host cannot be")
    assert "would change from 'az2' to 'az1'" in refused
    assert aggregates.ask("GET", "/1").json["aggregate"]["hosts"] == ["pve2"]
    assert aggregates.describe(1, rack="1").status_code == 200
    assert aggregates.describe(1, availability_zone="az2").status_code == 200


def test_everything_goes_by_the_zone(api: ComputeApi, aggregates: Aggregates) -> None:
    def zones() -> dict[str, list[str]]:
        found = api.get("/os-availability-zone/detail", token=auth.ADMIN).json
        return {zone["zoneName"]: sorted(zone["hosts"]) for zone in found["availabilityZoneInfo"]}

    aggregates.create("a", "az2")
    aggregates.add(1, "pve2")
    assert zones() == {"az1": ["pve1"], "az2": ["pve2"]}
    listed = api.get("/os-services", token=auth.ADMIN).json["services"]
    assert {service["host"]: service["zone"] for service in listed} == {
        "pve1": "az1",
        "pve2": "az2",
    }
    plain = api.get("/os-availability-zone").json["availabilityZoneInfo"]
    assert [zone["zoneName"] for zone in plain] == ["az1", "az2"]
    aggregates.ask("PUT", "/1", {"aggregate": {"availability_zone": "az3"}})
    assert zones() == {"az1": ["pve1"], "az3": ["pve2"]}
    image = ids.named("image", "debian-12")
    server = {"name": "s", "flavorRef": "m1.small", "imageRef": image}
    for zone, status in (("az3", 202), ("az2", 400), ("az3:pve2", 202), ("az1:pve2", 400)):
        body = {"server": {**server, "availability_zone": zone}}
        answer = api.request("POST", "/servers", body, token=auth.ADMIN)
        assert answer.status_code == status, (zone, answer.text)
    aggregates.remove(1, "pve2")
    assert zones() == {"az1": ["pve1", "pve2"]}


def test_placement_is_to_be_informed_of_changed_hosts_only(
    api: ComputeApi, aggregates: Aggregates
) -> None:
    def marked() -> list[str]:
        table = schema.aggregate_mirrors
        with api.reader.connect() as connection:
            return [row.host for row in connection.execute(table.select())]

    aggregates.create("a", "az2")
    assert marked() == []
    aggregates.add(1, "pve2")
    assert marked() == ["pve2"]
    aggregates.describe(1, rack="1")
    aggregates.remove(1, "pve2")
    assert marked() == ["pve2"]


def test_images_to_be_made_ready(api: ComputeApi, aggregates: Aggregates) -> None:
    aggregates.create("a")
    new = Aggregates(api, "2.81")
    first, second = ids.new_uuid(), ids.new_uuid()
    body = {"cache": [{"id": first}, {"id": second.replace("-", "")}]}
    answer = new.ask("POST", "/1/images", body)
    assert (answer.status_code, answer.content) == (202, b"")
    assert api.conductor.asked[-1] == ("cache_images", (1, [first, second]))
    assert aggregates.ask("POST", "/1/images", body).status_code == 404
    assert new.ask("POST", "/9/images", body).status_code == 404
    assert new.ask("POST", "/x/images", body).status_code == 400
    for wrong in (
        {"cache": []},
        {"cache": [{"id": "x"}]},
        {"cache": [first]},
        {"cache": [{"id": first, "name": "x"}]},
        {},
    ):
        assert new.ask("POST", "/1/images", wrong).status_code == 400, wrong
    twice = new.ask("POST", "/1/images", {"cache": [{"id": first}, {"id": first}]})
    assert message(twice, 400) == "Duplicate images in request"
    asked = api.request("POST", "/os-aggregates/1/images", body, version="2.81")
    assert asked.status_code == 403
