"""What is the same for all routes: versions, links, errors, bodies."""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import mounted
from tests.functional.api_compute.conftest import MakeApi

NEW, OLD = "OpenStack-API-Version", "X-OpenStack-Nova-API-Version"


@pytest.mark.parametrize("path", ["", "/"])
def test_versions(api: ComputeApi, path: str) -> None:
    answer = api.raw("GET", path or "/")
    (version,) = answer.json["versions"]
    assert version["id"] == "v2.1"
    assert version["min_version"] == "2.1"
    assert version["links"][0]["href"].endswith("/v2.1/")


@pytest.mark.parametrize("path", ["/v2.1", "/v2.1/"])
def test_the_version(api: ComputeApi, path: str) -> None:
    version = api.raw("GET", path).json["version"]
    assert version["status"] == "CURRENT"
    assert version["links"][0] == {"rel": "self", "href": "http://falconframework.org/v2.1/"}


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ({}, "2.1"),
        ({NEW: "compute 2.26"}, "2.26"),
        ({OLD: "2.26"}, "2.26"),
        ({NEW: "compute 2.30", OLD: "2.26"}, "2.30"),
        ({NEW: "placement 1.3, compute 2.30"}, "2.30"),
        ({NEW: "placement 1.3"}, "2.1"),
        ({NEW: "compute latest"}, None),
    ],
)
def test_negotiation(api: ComputeApi, headers: dict[str, str], spoken: str | None) -> None:
    answer = api.get("/flavors", version=None, headers=headers)
    newest = api.raw("GET", "/").json["versions"][0]["version"]
    assert answer.headers[NEW] == f"compute {spoken or newest}"
    assert answer.headers[OLD] == (spoken or newest)
    assert answer.headers["Vary"] == f"{NEW}, {OLD}"


def test_versions_that_are_none(api: ComputeApi) -> None:
    for wrong in ("2.0", "2.9999", "1.1", "3.0"):
        answer = api.get("/flavors", version=wrong)
        assert answer.status_code == 406
        assert "Minimum is 2.1 and maximum is" in answer.json["computeFault"]["message"]
    for wrong in ("2", "x", "2.01", "2.1.1", "2.²"):
        answer = api.get("/flavors", version=None, headers={OLD: wrong.encode().decode("latin-1")})
        assert answer.status_code == 400, wrong
        assert "of invalid format" in answer.json["badRequest"]["message"]


def test_unknown_routes_and_methods(api: ComputeApi) -> None:
    for path in ("/nope", "/os-volumes_boot", "/os-migrations", "/servers/a/b/c"):
        answer = api.get(path)
        assert answer.status_code == 404
        assert answer.json == {
            "itemNotFound": {"code": 404, "message": "The resource could not be found."}
        }
    answer = api.request("PATCH", "/servers")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, POST, OPTIONS"
    assert answer.json["badMethod"]["code"] == 405


def test_bodies(api: ComputeApi) -> None:
    def post(**more: Any) -> falcon.testing.Result:
        return api.request("POST", "/servers", **more)

    assert post(raw=b"{").json["badRequest"]["message"] == "Malformed request body"
    assert post(raw=b'{"server": {"name": "a\\u0000"}}').status_code == 400
    assert post(raw=b"x" * 200_000).json["overLimit"]["code"] == 413
    empty = post()
    assert empty.json["badRequest"]["message"] == "None is not of type 'object'"
    form = post(raw=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert form.json == {"badMediaType": {"code": 415, "message": "Unsupported Content-Type"}}
    assert api.get("/flavors/a%00b").status_code == 404


def test_request_ids(api: ComputeApi) -> None:
    answer = api.get("/nope")
    assert answer.headers["x-openstack-request-id"] == answer.headers["x-compute-request-id"]
    assert api.get("/servers", token=None).headers["x-compute-request-id"].startswith("req-")


def links(api: ComputeApi, headers: dict[str, str]) -> str:
    client = falcon.testing.TestClient(mounted(api.app, "/compute"))
    answer = client.simulate_get(
        f"/compute/v2.1/servers/{uuid_of(1)}",
        headers={"X-Auth-Token": auth.MEMBER, "Host": "cloud.test:8774", **headers},
    )
    bookmark = str(answer.json["server"]["links"][1]["href"])
    own = str(answer.json["server"]["links"][0]["href"])
    assert own.replace("/v2.1", "") == bookmark
    return own.removesuffix(f"/servers/{uuid_of(1)}")


def test_links_follow_the_request(make: MakeApi) -> None:
    api = make(a_full_server(1))
    assert links(api, {}) == "http://cloud.test:8774/compute/v2.1"
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "public.test"}
    assert links(api, forwarded) == "https://public.test/compute/v2.1"
    behind = {**forwarded, "X-Forwarded-Prefix": "/east/"}
    assert links(api, behind) == "https://public.test/east/compute/v2.1"


def test_links_as_configured(make: MakeApi) -> None:
    api = make(a_full_server(1), compute_link_prefix="https://cloud.example/nova/")
    assert links(api, {}) == "https://cloud.example/nova/v2.1"
