"""Why a request was refused is shown under its ID: to its project and to operators."""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest
import sqlalchemy as sa

from common.errors import Conflict, QuotaExceeded
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.cloud import eventually

pytestmark = pytest.mark.database

SERVER = {"name": "web", "flavorRef": "m1.small", "imageRef": IMAGE, "networks": "none"}
HEADER = "x-openstack-request-id"


def over_quota() -> QuotaExceeded:
    return QuotaExceeded(
        "Quota exceeded for ram: Requested 2048, but already used 4096 of 5000 ram",
        resource=["ram"],
        limit=[5000],
        used=[4096],
        requested=[2048],
    )


def create(api: ComputeApi, **changes: Any) -> falcon.testing.Result:
    keywords = {key: changes.pop(key) for key in ("token", "headers") if key in changes}
    return api.request(
        "POST", "/servers", {"server": SERVER | changes}, version="2.90", **keywords
    )


def rows(api: ComputeApi) -> list[Any]:
    with api.writer.connect() as connection:
        return list(connection.execute(sa.select(schema.refusals).order_by("id")))


def kept(api: ComputeApi, count: int = 1) -> list[Any]:
    eventually(lambda: len(rows(api)) == count)
    return rows(api)


def story(api: ComputeApi, subject: str, token: str = auth.MEMBER) -> dict[str, Any]:
    answer = api.get(f"/explanations/{subject}", token=token)
    assert answer.status_code == 200, answer.text
    [operation] = answer.json["explanation"]["operations"]
    assert isinstance(operation, dict)
    return operation


def test_a_create_over_quota_shows_limit_usage_and_what_was_asked(api: ComputeApi) -> None:
    api.conductor.fail = over_quota()
    answer = create(api)
    assert answer.status_code == 403
    kept(api)
    shown = story(api, answer.headers[HEADER])
    assert (shown["state"], shown["action"]) == ("refused", "POST /v2.1/servers")
    assert (shown["project_id"], shown["user_id"], shown["server"]) == ("demo", "demo", None)
    assert shown["message"].startswith("Quota exceeded for ram: Requested 2048")
    asked, quota = shown["events"]
    assert (asked["name"], asked["result"]) == ("api_request", "Error")
    assert asked["detail"] == {"method": "POST", "path": "/v2.1/servers", "status": 403}
    assert (quota["name"], quota["result"]) == ("conductor_take_quota", "Error")
    assert quota["detail"] == {"ram": {"limit": 5000, "used": 4096, "asked": 2048}}
    assert shown["started_at"] <= shown["finished_at"]


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        ({"name": ""}, 400, "name"),
        ({"flavorRef": "none-such"}, 400, "Flavor none-such could not be found"),
        ({"networks": "none", "accessIPv4": "192.0.2"}, 400, "accessIPv4"),
    ],
)
def test_what_is_not_valid_says_what(
    api: ComputeApi, body: dict[str, Any], status: int, part: str
) -> None:
    answer = create(api, **body)
    assert answer.status_code == status
    kept(api)
    shown = story(api, answer.headers[HEADER])
    assert part in shown["message"]
    assert [event["name"] for event in shown["events"]] == ["api_request"]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"networks": [{"uuid": "no-such"}]},
        {"adminPass": {"is": "s3cr3t-pass"}},
        {"user_data": "!s3cr3t-data"},
        {"flavorRef": "none-such"},
        {"unknown": {"password": "s3cr3t-pass"}},
    ],
)
def test_no_secret_of_a_refused_create_is_answered_kept_or_shown(
    api: ComputeApi, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    secrets = {"adminPass": "s3cr3t-pass", "user_data": "czNjcjN0LWRhdGE="}
    with caplog.at_level("DEBUG"):
        answer = create(api, **{**secrets, **changes})
    assert answer.status_code == 400
    texts = [answer.text, str(kept(api)), str(story(api, answer.headers[HEADER])), caplog.text]
    for text in texts:
        for secret in ("s3cr3t", secrets["user_data"], "'adminPass'"):
            assert secret not in text


def test_what_the_policy_forbids_and_what_the_state_forbids(make: MakeApi) -> None:
    api = make(a_full_server(1))
    forbidden = create(api, token=auth.READER)
    assert forbidden.status_code == 403
    kept(api)
    assert "Policy doesn't allow" in story(api, forbidden.headers[HEADER])["message"]
    path = f"/servers/{uuid_of(1)}/action"
    running = api.request("POST", path, {"os-start": None})
    assert running.status_code == 409
    kept(api, 2)
    shown = story(api, running.headers[HEADER])
    assert shown["message"].startswith("Cannot 'start' instance")
    assert shown["events"][0]["detail"]["status"] == 409


def test_a_global_request_id_shows_all_that_was_refused_under_it(api: ComputeApi) -> None:
    theirs = f"req-{uuid_of(7)}"
    for _ in range(2):
        create(api, name="", headers={"X-OpenStack-Request-ID": theirs})
    kept(api, 2)
    found = api.get(f"/explanations/{theirs}").json["explanation"]["operations"]
    assert [one["state"] for one in found] == ["refused", "refused"]


def test_other_projects_read_nothing_and_owners_nothing_of_administrators(
    api: ComputeApi,
) -> None:
    mine = create(api, name="").headers[HEADER]
    kept(api)
    assert api.get(f"/explanations/{mine}", token=auth.OTHER).status_code == 404
    assert story(api, mine, auth.ADMIN)["state"] == "refused"
    api.conductor.fail = Conflict("Host pve1 is in the way")
    admins = create(api, token=auth.token("root", "demo", "admin", "member", "reader"))
    assert admins.status_code == 409
    kept(api, 2)
    assert api.get(f"/explanations/{admins.headers[HEADER]}").status_code == 404
    shown = story(api, admins.headers[HEADER], auth.ADMIN)
    assert shown["message"] == "Host pve1 is in the way"


def test_what_is_not_kept(api: ComputeApi) -> None:
    api.get(f"/servers/{uuid_of(5)}")
    create(api, token="nonsense")
    create(api, token=None)
    create(api, name="", token=auth.SYSTEM)
    assert create(api).status_code == 202
    last = create(api, name="").headers[HEADER]
    assert [row.request_id for row in kept(api)] == [last]


def test_what_the_inside_raised_is_not_reported(api: ComputeApi) -> None:
    api.conductor.fail = RuntimeError("secret of pve1")
    answer = create(api)
    assert answer.status_code == 500
    kept(api)
    seen = api.get(f"/explanations/{answer.headers[HEADER]}", token=auth.ADMIN)
    assert "secret" not in seen.text
    assert "leads to the cause in the service's log" in seen.text


def test_of_a_project_so_many_are_kept(api: ComputeApi) -> None:
    """The conductor of these tests stores three."""
    ids = [create(api, name="").headers[HEADER] for _ in range(5)]
    others = create(api, name="", token=auth.OTHER).headers[HEADER]
    eventually(lambda: bool(rows(api)) and rows(api)[-1].request_id == others)
    assert [row.request_id for row in rows(api)] == [*ids[2:], others]


def test_a_path_may_hold_anything(api: ComputeApi) -> None:
    answer = api.request("DELETE", f"/os-keypairs/{'a%00%1b' * 200}")
    assert answer.status_code == 404
    [row] = kept(api)
    assert len(row.path) == 255
    assert "\0" not in row.path
    assert story(api, answer.headers[HEADER])["state"] == "refused"
