"""A create under a client's own key, repeated, is the same; so is a call whose answer was lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from falcon import testing
from oslo_messaging.transport import RPCTransport

from api.compute.app import make_app
from common.messages.topics import CONDUCTOR_TOPIC
from common.rpc.localbus import LocalDriver
from common.rpc.messaging import oslo_messaging
from db import schema
from launcher.wiring import Wiring
from tests.fixtures import auth
from tests.functional.cloud import eventually
from tests.functional.test_record import Site

OTHER_PROJECT = auth.token("stranger", "other", "member", "reader")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("cloud"))
    made.cloud.start()
    eventually(lambda: made.rows(sa.select(schema.images.c.id)))
    yield made
    made.cloud.stop()


def create(site: Site, key: str | None, token: str = auth.MEMBER, **more: Any) -> Any:
    image = site.rows(sa.select(schema.images.c.id))[0][0]
    body = {"name": "keyed", "flavorRef": "1", "imageRef": image, "networks": "none", **more}
    headers = {"X-Auth-Token": token, "OpenStack-API-Version": "compute latest"}
    if key is not None:
        headers["Idempotency-Key"] = key
    request = "req-00000000-0000-4000-8000-000000000001"
    headers["X-OpenStack-Request-ID"] = request
    return site.cloud.api.simulate_request(
        "POST", "/v2.1/servers", headers=headers, json={"server": body}
    )


def servers(site: Site) -> int:
    return int(site.rows(sa.select(sa.func.count()).select_from(schema.servers))[0][0])


def test_the_same_request_under_a_key_is_one_create(site: Site) -> None:
    before = servers(site)
    first = create(site, "k-1")
    again = create(site, '"k-1"')
    assert [first.status_code, again.status_code] == [202, 202], again.text
    assert first.json["server"]["id"] == again.json["server"]["id"]
    assert first.headers["Location"] == again.headers["Location"]
    assert "adminPass" in first.json["server"]
    assert "adminPass" not in again.json["server"], "the guest has the first one"
    assert servers(site) == before + 1


def test_requests_at_once_under_a_key_are_one_create(site: Site) -> None:
    before, found = servers(site), set[str]()

    def ask() -> int:
        answer = create(site, "k-together")
        found.add(answer.json["server"]["id"])
        return int(answer.status_code)

    assert site.together(*[ask] * 8) == [202] * 8
    assert (len(found), servers(site)) == (1, before + 1)


def test_several_servers_of_a_request_are_the_same_again(site: Site) -> None:
    before = servers(site)
    more = {"min_count": 2, "max_count": 3, "return_reservation_id": True}
    first, again = (create(site, "k-many", **more) for _ in range(2))
    assert first.status_code == again.status_code == 202
    assert first.json == again.json
    assert servers(site) == before + 3


def test_another_request_under_a_key_is_refused(site: Site) -> None:
    made = create(site, "k-2").json["server"]["id"]
    before = servers(site)
    refused = create(site, "k-2", name="another")
    assert refused.status_code == 409
    assert refused.json["conflictingRequest"]["message"] == (
        f"The Idempotency-Key was used for another request, which created server {made}."
    )
    assert servers(site) == before


def test_a_key_is_its_users_own(site: Site) -> None:
    mine = create(site, "k-3").json["server"]["id"]
    theirs = create(site, "k-3", token=OTHER_PROJECT)
    assert theirs.status_code == 202, theirs.text
    assert theirs.json["server"]["id"] != mine


def test_without_a_key_every_request_creates(site: Site) -> None:
    """Also those of one global request ID: clients send it for several creates."""
    first, second = create(site, None), create(site, None)
    assert first.json["server"]["id"] != second.json["server"]["id"]


def test_the_key_of_a_deleted_server_is_used(site: Site) -> None:
    made = create(site, "k-4").json["server"]["id"]
    eventually(lambda: site.show(made)["status"] == "ACTIVE")
    assert site.ask("DELETE", f"/servers/{made}").status_code == 204
    eventually(lambda: site.show(made) is None)
    refused = create(site, "k-4")
    assert refused.status_code == 409
    assert "which is deleted" in refused.json["conflictingRequest"]["message"]


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "tab\there", "ü"])
def test_unusable_keys(site: Site, key: str) -> None:
    before = servers(site)
    refused = create(site, key)
    assert refused.status_code == 400, refused.text
    assert servers(site) == before


# --- answers that are lost


class Forgetful(LocalDriver):
    """The message bus of an API, to which answers of a conductor don't come."""

    _lost: str | None = None
    _is_sent = True
    losses = 0

    def send(self, target: Any, ctxt: Any, message: Any, *args: Any, **options: Any) -> Any:
        """Lose the answer after what was asked for was done, or do nothing."""
        if (target.topic, message["method"]) != (CONDUCTOR_TOPIC, self._lost):
            return super().send(target, ctxt, message, *args, **options)
        self.losses += 1
        if self._is_sent:
            super().send(target, ctxt, message, *args, **options)
        raise oslo_messaging.MessagingTimeout("Timed out waiting for a reply")

    @contextmanager
    def losing(self, method: str, *, before: bool = False) -> Iterator[None]:
        """Lose the answers of a method; ``before``: the calls, too."""
        self._lost, self._is_sent, self.losses = method, not before, 0
        yield
        self._lost = None
        assert self.losses == 1


@pytest.fixture(scope="module")
def forgetful(site: Site) -> Iterator[Forgetful]:
    """Of the API of the site, which is wired here as in its process."""
    process = Wiring(site.cloud.driver.conf)
    bus = Forgetful(process.conf, process.conf.transport_url, "openstack")
    process.transport = RPCTransport(bus)
    app = make_app(
        process.conf, process.conductor_client, process.reader, protect=auth.header_auth
    )
    whole, site.cloud.api = site.cloud.api, testing.TestClient(app)
    yield bus
    site.cloud.api = whole


def test_a_create_whose_answer_is_lost_is_accepted(site: Site, forgetful: Forgetful) -> None:
    before = servers(site)
    with forgetful.losing("create_servers"):
        answer = create(site, None)
    assert answer.status_code == 202, answer.text
    made = answer.json["server"]["id"]
    assert answer.headers["Location"].endswith(f"/servers/{made}")
    assert servers(site) == before + 1
    eventually(lambda: site.show(made)["status"] == "ACTIVE")


def test_many_servers_are_named_by_the_reservation_that_was_made(
    site: Site, forgetful: Forgetful
) -> None:
    more = {"min_count": 2, "max_count": 3, "return_reservation_id": True}
    with forgetful.losing("create_servers"):
        answer = create(site, None, **more)
    assert answer.status_code == 202, answer.text
    made = schema.servers.c.reservation_id == answer.json["reservation_id"]
    assert len(site.rows(sa.select(schema.servers.c.uuid).where(made))) == 3


def test_a_create_that_did_not_reach_a_conductor_is_not_accepted(
    site: Site, forgetful: Forgetful
) -> None:
    before = servers(site)
    with forgetful.losing("create_servers", before=True):
        answer = create(site, None)
    assert answer.status_code == 503, answer.text
    assert servers(site) == before


def test_an_action_whose_answer_is_lost_is_accepted(site: Site, forgetful: Forgetful) -> None:
    made = create(site, None).json["server"]["id"]
    eventually(lambda: site.show(made)["status"] == "ACTIVE")
    with forgetful.losing("act", before=True):
        assert site.act(made, {"os-stop": None}) == 503
    assert site.actions(made) == ["create"]
    with forgetful.losing("act"):
        assert site.act(made, {"os-stop": None}) == 202
    eventually(lambda: site.show(made)["status"] == "SHUTOFF")
    assert site.actions(made) == ["stop", "create"]


def test_what_has_no_operation_is_the_one_that_was_made(site: Site, forgetful: Forgetful) -> None:
    body = {"server_group": {"name": "g", "policy": "affinity"}}
    with forgetful.losing("create_server_group"):
        answer = site.ask("POST", "/os-server-groups", body)
    assert answer.status_code == 200, answer.text
    rows = site.rows(sa.select(schema.server_groups.c.uuid))
    assert [row[0] for row in rows] == [answer.json["server_group"]["id"]]
