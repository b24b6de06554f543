"""Actions that change a server's record only, through all services on the null driver."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import auth
from tests.functional.cloud import eventually
from tests.functional.test_costs import Cloud, image_id

#: statements on the cloud database: the API's look-up, and the conductor's transaction
LOCK_STATEMENTS = 7
CLIENTS = 8


class Site:
    """A cloud with one project, asked at one microversion."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cloud = Cloud(folder)

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
