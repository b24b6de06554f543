"""A create under a client's own key: repeated, it is the same create."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
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
