"""Actions that change a server's record only, through all services on the null driver."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.resources.states import OPEN_STATES
from db import schema
from tests.fixtures import auth
from tests.functional.cloud import eventually
from tests.functional.test_costs import Cloud, image_id, look

#: statements on the cloud database: the API's look-up, and the conductor's transaction
LOCK_STATEMENTS = 7
CLIENTS = 8


class Site:
    """A cloud with one project, asked at one microversion."""

    def __init__(self, folder: Path, *more: Any) -> None:
        self.folder = folder
        self.cloud = Cloud(folder, *more)

    def ask(
        self, method: str, path: str, body: Any = None, token: str = auth.MEMBER, **more: str
    ) -> Any:
        """The answer to a request; ``version`` is the newest by default."""
        version = more.get("version", "latest")
        headers = {"X-Auth-Token": token, "OpenStack-API-Version": f"compute {version}"}
        keywords = {} if body is None else {"json": body}
        return self.cloud.api.simulate_request(method, f"/v2.1{path}", headers=headers, **keywords)

    def act(self, uuid: str, body: Any, token: str = auth.MEMBER) -> int:
        """The status of an action."""
        return int(self.ask("POST", f"/servers/{uuid}/action", body, token).status_code)

    def show(self, uuid: str, token: str = auth.ADMIN) -> Any:
        """A server, or None where it is gone."""
        answer = self.ask("GET", f"/servers/{uuid}", token=token)
        return answer.json["server"] if answer.status_code == 200 else None

    def server(self, image: str, **more: Any) -> str:
        """A server that is active."""
        body = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none", **more}
        made = self.ask("POST", "/servers", {"server": body})
        assert made.status_code == 202, made.text
        uuid = str(made.json["server"]["id"])
        eventually(lambda: self.show(uuid)["status"] == "ACTIVE")
        return uuid

    def actions(self, uuid: str) -> list[str]:
        """What was done to a server, newest first."""
        answer = self.ask("GET", f"/servers/{uuid}/os-instance-actions")
        return [action["action"] for action in answer.json["instanceActions"]]

    def events(self, uuid: str, action: str) -> list[str]:
        """The events of the last such action."""
        path = f"/servers/{uuid}/os-instance-actions"
        found = self.ask("GET", path).json["instanceActions"]
        request = next(one["request_id"] for one in found if one["action"] == action)
        shown = self.ask("GET", f"{path}/{request}", token=auth.ADMIN).json["instanceAction"]
        return [event["event"] for event in shown["events"]]

    def open_operations(self, uuid: str) -> int:
        """How many operations of a server are not at their end."""
        columns = schema.operations.c
        query = sa.select(sa.func.count()).where(
            columns.resource_id == uuid, columns.state.in_(OPEN_STATES)
        )
        return int(self.rows(query)[0][0])

    def rows(self, query: sa.Select[Any]) -> list[Any]:
        """What the cloud database has, past everything that is counted."""
        with self.cloud.reader.connect() as connection:
            return list(connection.execute(query))

    def counted(self, work: Callable[[], Any]) -> int:
        """The statements on the cloud database while something is done."""
        before = self.cloud.statements["cloud"]
        work()
        return self.cloud.statements["cloud"] - before

    def together(self, *work: Callable[[], int]) -> list[int]:
        """Statuses of requests that are sent at once."""
        with ThreadPoolExecutor(len(work)) as pool:
            return [done.result() for done in [pool.submit(one) for one in work]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("cloud"))
    made.cloud.start()
    try:
        eventually(made.cloud.ready)
        yield made
        assert eventually(made.cloud.audit)["clean"]
    finally:
        made.cloud.stop()


@pytest.fixture(scope="module")
def image(site: Site) -> str:
    return image_id(site.folder)


def test_lock_and_unlock(site: Site, image: str) -> None:
    uuid = site.server(image)
    reason = {"lock": {"locked_reason": "mine"}}
    cost = site.counted(lambda: site.act(uuid, reason))
    assert cost <= LOCK_STATEMENTS
    server = site.show(uuid)
    assert (server["locked"], server["locked_reason"]) == (True, "mine")
    assert site.act(uuid, {"os-stop": None}) == 409
    assert site.act(uuid, reason) == 202
    assert site.actions(uuid).count("lock") == 1
    assert site.events(uuid, "lock") == ["api_lock", "api_request"]
    assert site.act(uuid, {"unlock": None}) == 202
    assert site.events(uuid, "unlock") == ["api_unlock", "api_request"]
    assert site.act(uuid, {"os-stop": None}) == 202
    eventually(lambda: site.show(uuid)["status"] == "SHUTOFF")
    assert site.ask("DELETE", f"/servers/{uuid}").status_code == 204
    eventually(lambda: site.show(uuid) is None)


def test_locks_against_actions(site: Site, image: str) -> None:
    """Each is accepted or refused; none takes effect on a server that is locked."""
    uuid = site.server(image)
    bodies = [{"lock": None}, {"os-stop": None}, {"unlock": None}, {"os-start": None}] * 2
    for _ in range(3):
        found = site.together(*(lambda body=body: site.act(uuid, body) for body in bodies))
        assert set(found) <= {202, 409}, collections.Counter(found)
    eventually(lambda: site.show(uuid)["OS-EXT-STS:task_state"] is None)
    assert site.act(uuid, {"lock": None}) == 202
    before = site.show(uuid)["status"]
    refused = site.together(*[lambda: site.act(uuid, {"reboot": {"type": "HARD"}})] * CLIENTS)
    assert refused == [409] * CLIENTS
    assert site.show(uuid)["status"] == before
    assert site.ask("DELETE", f"/servers/{uuid}").status_code == 409
    assert site.ask("DELETE", f"/servers/{uuid}", token=auth.ADMIN).status_code == 204
    eventually(lambda: site.show(uuid) is None)


def test_reset_state_and_force_delete(site: Site, image: str) -> None:
    uuid = site.server(image)
    body = {"os-resetState": {"state": "error"}}
    assert site.act(uuid, body) == 403
    assert site.act(uuid, body, auth.ADMIN) == 202
    assert site.show(uuid)["status"] == "ERROR"
    assert "resetState" in site.actions(uuid)
    assert site.act(uuid, {"os-resetState": {"state": "active"}}, auth.ADMIN) == 202
    assert site.show(uuid)["status"] == "ACTIVE"
    assert site.act(uuid, {"lock": None}, auth.ADMIN) == 202
    assert site.act(uuid, {"forceDelete": None}) == 409
    assert site.act(uuid, {"forceDelete": None}, auth.ADMIN) == 202
    eventually(lambda: site.show(uuid) is None)
    assert site.actions(uuid)[0] == "delete"


def test_resets_against_actions(site: Site, image: str) -> None:
    """No operation is left open, and the server can be used and deleted afterwards."""
    uuid = site.server(image)
    states = [{"os-resetState": {"state": state}} for state in ("active", "error")]
    bodies = [*states, {"os-stop": None}, {"os-start": None}, {"reboot": {"type": "HARD"}}]
    together = [*bodies, *bodies[:3]]
    assert len(together) == CLIENTS
    for _ in range(3):
        found = site.together(
            *(lambda body=body: site.act(uuid, body, auth.ADMIN) for body in together)
        )
        assert set(found) <= {202, 409}, collections.Counter(found)
    eventually(lambda: site.open_operations(uuid) == 0)
    assert site.show(uuid)["OS-EXT-STS:task_state"] is None
    assert site.ask("DELETE", f"/servers/{uuid}").status_code == 204
    eventually(lambda: site.show(uuid) is None)


def test_access_addresses_and_the_zone(site: Site, image: str) -> None:
    uuid = site.server(image, accessIPv4="192.0.2.1")
    assert site.show(uuid)["accessIPv4"] == "192.0.2.1"

    def put(**changes: Any) -> Any:
        return site.ask("PUT", f"/servers/{uuid}", {"server": changes})

    shown = put(accessIPv6="2001:db8::2").json["server"]
    assert (shown["accessIPv4"], shown["accessIPv6"]) == ("192.0.2.1", "2001:db8::2")
    zone = shown["OS-EXT-AZ:availability_zone"]
    assert shown["pinned_availability_zone"] is None
    other = put(pinned_availability_zone="elsewhere", name="other")
    assert other.status_code == 409
    assert other.json["conflictingRequest"]["message"] == (
        f"Server can only be pinned to its current availability zone '{zone}', but 'elsewhere' "
        "was requested."
    )
    assert site.show(uuid)["name"] == "s"
    assert put(pinned_availability_zone=zone).json["server"]["pinned_availability_zone"] == zone
    assert put(pinned_availability_zone=zone).status_code == 200
    changed = put(pinned_availability_zone="elsewhere")
    assert changed.json["conflictingRequest"]["message"] == (
        "Cannot change pinned availability zone directly. Unpin first by setting "
        "pinned_availability_zone to null."
    )
    assert put(pinned_availability_zone=None).json["server"]["pinned_availability_zone"] is None
    assert site.act(uuid, {"forceDelete": None}) == 202
    eventually(lambda: site.show(uuid) is None)
    usage = site.ask("GET", "/os-simple-tenant-usage/demo?start=2020-01-01T00:00:00")
    found = {one["instance_id"]: one for one in usage.json["tenant_usage"]["server_usages"]}
    assert found[uuid]["state"] == "terminated"


def test_the_default_class_bounds_creates(site: Site, image: str) -> None:
    path = "/os-quota-class-sets/default"

    def limit(number: int) -> int:
        body = {"quota_class_set": {"instances": number}}
        return int(site.ask("PUT", path, body, auth.ADMIN).status_code)

    before = site.ask("GET", path, token=auth.ADMIN).json["quota_class_set"]["instances"]
    assert limit(0) == 200
    body = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}
    assert site.ask("POST", "/servers", {"server": body}).status_code == 403
    numbers = [*range(1, 8), before]
    assert site.together(*(lambda n=n: limit(n) for n in numbers)) == [200] * CLIENTS
    assert limit(before) == 200


def test_files_of_a_create(site: Site, image: str) -> None:
    """Before 2.57 they go into the config drive; quotas bound them."""
    server = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}

    def create(*files: tuple[str, str], version: str = "2.56") -> Any:
        personality = [{"path": path, "contents": contents} for path, contents in files]
        body = {"server": {**server, "personality": personality}}
        return site.ask("POST", "/servers", body, version=version)

    assert create(("/a", "aGk="), version="2.57").status_code == 400
    assert create(("/a", "x")).status_code == 400
    for files, message in (
        ([("/a", "aGk=")] * 6, "Personality file limit exceeded"),
        ([("/" * 256, "aGk=")], "Personality file path exceeds maximum 255"),
        ([("/a", "aGkh" * 2561)], "Personality file content exceeds maximum 10240"),
    ):
        refused = create(*files)
        assert refused.status_code == 403, refused.text
        assert refused.json["forbidden"]["message"] == message
    made = create(("/etc/motd", "aGk="))
    assert made.status_code == 202
    assert made.json["server"]["adminPass"]
    uuid = made.json["server"]["id"]
    eventually(lambda: site.show(uuid)["status"] == "ACTIVE")
    kept = "SELECT params FROM operations WHERE resource_id = ?"
    eventually(lambda: look(site.folder, kept, uuid) == "{}")
    assert site.act(uuid, {"forceDelete": None}) == 202
    eventually(lambda: site.show(uuid) is None)
