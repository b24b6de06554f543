"""What is the same for all routes: versions, links, errors, bodies."""

from __future__ import annotations

import collections
import string
from typing import Any

import falcon.testing
import pytest

from api.compute.routes import ROUTES
from common.metrics import exposition
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import mounted
from tests.functional.api_compute.conftest import MakeApi

NEW, OLD = "OpenStack-API-Version", "X-OpenStack-Nova-API-Version"


@pytest.mark.parametrize("path", ["", "/"])
def test_versions(api: ComputeApi, path: str) -> None:
    answer = api.raw("GET", path or "/")
    legacy, version = answer.json["versions"]
    assert version["id"] == "v2.1"
    assert version["min_version"] == "2.1"
    assert version["links"][0]["href"].endswith("/v2.1/")
    assert (legacy["id"], legacy["status"]) == ("v2.0", "DEPRECATED")
    assert (legacy["version"], legacy["min_version"]) == ("", "")
    assert legacy["links"] == [{"rel": "self", "href": "http://falconframework.org/v2/"}]


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
    newest = api.raw("GET", "/").json["versions"][1]["version"]
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
    for path in ("/nope", "/os-nothing", "/servers/a/b/c"):
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


PROJECT = "0123456789abcdef0123456789abcdef"
OF_PROJECT = auth.token("demo", PROJECT)


@pytest.fixture
def hex_api(make: MakeApi) -> ComputeApi:
    """A server of a project whose ID looks as Keystone's do."""
    return make(a_full_server(1, PROJECT), a_full_server(2, PROJECT), a_full_server(3, "other"))


def ask(api: ComputeApi, path: str, token: str | None = OF_PROJECT, **headers: str) -> Any:
    identity = {} if token is None else {"X-Auth-Token": token}
    path, _, query = path.partition("?")
    return api.raw("GET", path, headers={**identity, **headers}, query_string=query)


@pytest.mark.parametrize("path", ["/v2.1//limits", "//v2.1/limits", "/v2.1///servers//detail"])
def test_slashes_are_joined(hex_api: ComputeApi, path: str) -> None:
    answer = ask(hex_api, path)
    assert answer.status_code == 200
    assert answer.json.keys() <= {"limits", "servers"}
    assert ask(hex_api, "//v2.1//", token=None).json["version"]["id"] == "v2.1"
    assert ask(hex_api, path, token=None).status_code == 401


def test_every_route_is_there_with_the_project_too(hex_api: ComputeApi) -> None:
    refused = 0
    for row in ROUTES:
        values = collections.defaultdict(lambda: uuid_of(1))
        path = string.Formatter().vformat(row.path, (), values)
        for method in (*row.methods, "PATCH"):
            body = dict.fromkeys(list(row.actions)[:1])
            plain, named = (
                hex_api.request(method, f"{project}{path}", body, version="2.96", token=auth.ADMIN)
                for project in ("", f"/{PROJECT}")
            )
            if "could not be found." in plain.text and "resource" in plain.text:
                assert (named.status_code, named.text) == (404, plain.text), path
            elif method == "PATCH":
                assert (plain.status_code, named.status_code) == (405, 405)
            else:
                assert named.status_code == 400, (method, path, named.text)
                assert "Malformed request URL" in named.text
                refused += 1
    assert refused >= len(ROUTES)
    assert ask(hex_api, f"/v2.1/{PROJECT}/nope").status_code == 404
    assert ask(hex_api, f"/v2.1/servers/{PROJECT}/servers").status_code == 404


def test_the_project_of_the_path_is_the_tokens(hex_api: ComputeApi) -> None:
    servers = ask(hex_api, f"/v2.1/{PROJECT}/servers").json["servers"]
    assert {server["id"] for server in servers} == {uuid_of(1), uuid_of(2)}
    other = "ffffffffffffffffffffffffffffffff"
    for path in ("servers", f"servers/{uuid_of(1)}", "limits", "flavors/nope"):
        answer = ask(hex_api, f"/v2.1/{other}/{path}")
        assert answer.status_code == 400
        assert answer.json["badRequest"]["message"] == (
            f"Malformed request URL: URL's project_id '{other}' doesn't match Context's "
            f"project_id '{PROJECT}'"
        )
    assert ask(hex_api, f"/v2.1/{PROJECT}/servers", token=None).status_code == 401
    # What could be no project's ID is none, as in Nova.
    assert ask(hex_api, "/v2.1/demo/servers", auth.MEMBER).status_code == 404


def test_links_name_the_project_where_the_request_does(hex_api: ComputeApi) -> None:
    root = "http://falconframework.org"
    for project in ("", f"/{PROJECT}"):
        answer = ask(hex_api, f"/v2.1{project}/servers?limit=1").json
        identifier = answer["servers"][0]["id"]
        own, bookmark = (link["href"] for link in answer["servers"][0]["links"])
        assert own == f"{root}/v2.1{project}/servers/{identifier}"
        assert bookmark == f"{root}{project}/servers/{identifier}"
        following = answer["servers_links"][0]["href"]
        assert following == f"{root}/v2.1{project}/servers?limit=1&marker={identifier}"
        assert ask(hex_api, following.removeprefix(root)).status_code == 200


def test_the_version_with_a_project(hex_api: ComputeApi) -> None:
    assert ask(hex_api, f"/v2.1/{PROJECT}/").json["version"]["id"] == "v2.1"


def test_the_legacy_version_is_the_oldest_microversion(hex_api: ComputeApi) -> None:
    document = ask(hex_api, "/v2/", token=None).json["version"]
    assert (document["id"], document["links"][0]["href"]) == (
        "v2.0",
        "http://falconframework.org/v2/",
    )
    for path in ("/v2/servers", f"/v2/{PROJECT}/servers"):
        answer = ask(hex_api, path, **{NEW: "compute 2.26"})
        assert len(answer.json["servers"]) == 2
        assert not {NEW.lower(), OLD.lower(), "vary"} & {name.lower() for name in answer.headers}
        href = answer.json["servers"][0]["links"][0]["href"]
        assert href.startswith(f"http://falconframework.org{path}/")
    shown = ask(hex_api, f"/v2/servers/{uuid_of(1)}", **{NEW: "compute 2.26"}).json["server"]
    assert "tags" not in shown


def test_request_ids(api: ComputeApi) -> None:
    answer = api.get("/nope")
    assert answer.headers["x-openstack-request-id"] == answer.headers["x-compute-request-id"]
    assert api.get("/servers", token=None).headers["x-compute-request-id"].startswith("req-")


def links(api: ComputeApi, headers: dict[str, str], proxy: str = "10.0.0.5") -> str:
    client = falcon.testing.TestClient(mounted(api.app, "/compute"))
    answer = client.simulate_get(
        f"/compute/v2.1/servers/{uuid_of(1)}",
        headers={"X-Auth-Token": auth.MEMBER, "Host": "cloud.test:8774", **headers},
        remote_addr=proxy,
    )
    bookmark = str(answer.json["server"]["links"][1]["href"])
    own = str(answer.json["server"]["links"][0]["href"])
    assert own.replace("/v2.1", "") == bookmark
    return own.removesuffix(f"/servers/{uuid_of(1)}")


def test_links_follow_the_request(make: MakeApi) -> None:
    api = make(a_full_server(1), trusted_proxies=["10.0.0.0/24"])
    assert links(api, {}) == "http://cloud.test:8774/compute/v2.1"
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "public.test"}
    assert links(api, forwarded) == "https://public.test/compute/v2.1"
    behind = {**forwarded, "X-Forwarded-Prefix": "/east/"}
    assert links(api, behind) == "https://public.test/east/compute/v2.1"


FORWARDED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.test",
    "X-Forwarded-Prefix": "/evil",
    "Forwarded": "host=evil.test;proto=https",
}


@pytest.mark.parametrize("trusted", [[], ["10.0.0.0/24"]])
def test_links_follow_nobody_but_the_proxies(make: MakeApi, trusted: list[str]) -> None:
    api = make(a_full_server(1), trusted_proxies=trusted)
    for peer in ("10.0.1.5", "127.0.0.1"):
        assert links(api, FORWARDED, peer) == "http://cloud.test:8774/compute/v2.1"


def test_links_as_configured(make: MakeApi) -> None:
    api = make(a_full_server(1), compute_link_prefix="https://cloud.example/nova/")
    assert links(api, {}) == "https://cloud.example/nova/v2.1"


def _timed() -> list[str]:
    lines = exposition.text().decode().splitlines()
    return [one for one in lines if "micronova_http_request_seconds_count" in one]


def test_what_no_operation_answers_is_not_timed(api: ComputeApi) -> None:
    api.get("/servers")
    before = _timed()
    assert any('api="compute"' in one for one in before)
    for method in ("PATCH", "OPTIONS", "DELETE", "PUT", "HEAD"):
        for path in ("/servers", "/flavors", "/os-keypairs", "/nothing", "/images"):
            api.request(method, path)
    api.get("/images", version="2.104")
    api.request("POST", f"/servers/{uuid_of(1)}/action", {"no-such": None})
    assert [one.rsplit(" ", 1)[0] for one in _timed()] == [one.rsplit(" ", 1)[0] for one in before]
