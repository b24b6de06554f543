"""The API's form: versions, errors, headers, rules."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.errors import Unavailable
from placement.app import make_app
from tests.fixtures.auth import ADMIN, MEMBER, OTHER, READER, SYSTEM, header_auth
from tests.functional.placement.builders import a_body, a_provider, a_uuid, set_inventory, used

pytestmark = pytest.mark.timeout(900)


def error(answer: Any) -> dict[str, Any]:
    (found,) = answer.json["errors"]
    assert found["status"] == answer.status_code
    assert found["request_id"] == answer.headers["x-openstack-request-id"]
    return dict(found)


def test_the_version_document_needs_no_token(app: Any) -> None:
    from falcon import testing

    anonymous = testing.TestClient(app)
    answer = anonymous.simulate_get("/")
    (version,) = answer.json["versions"]
    assert (version["min_version"], version["max_version"]) == ("1.0", "1.39")
    assert answer.headers["openstack-api-version"] == "placement 1.0"
    assert answer.headers["vary"] == "openstack-api-version"
    assert anonymous.simulate_get("/resource_providers").status_code == 401


def test_errors_have_the_form_that_clients_know(api: Any) -> None:
    missing = a_uuid()
    found = error(api.simulate_get(f"/resource_providers/{missing}"))
    assert found["title"] == "Not Found"
    assert found["code"] == "placement.undefined_code"
    assert found["detail"] == (
        f"The resource could not be found.\n\n No resource provider with uuid {missing} found  "
    )
    assert "code" not in error(api.at("1.22").simulate_get(f"/resource_providers/{missing}"))


def test_a_version_outside_is_406_and_says_the_bounds(api: Any) -> None:
    answer = api.at("1.40").simulate_get("/resource_providers")
    found = error(answer)
    assert (answer.status_code, found["min_version"], found["max_version"]) == (406, "1.0", "1.39")
    assert api.at("pony").simulate_get("/").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/", "GET"),
        ("OPTIONS", "/resource_providers", "GET, POST"),
        ("PATCH", "/reshaper", "POST"),
    ],
)
def test_methods_that_are_not_there(api: Any, method: str, path: str, allow: str) -> None:
    answer = api.simulate_request(method, path)
    assert answer.status_code == 405
    assert sorted(answer.headers["allow"].split(", ")) == allow.split(", ")


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ("/resource_classes", "1.2"),
        ("/traits", "1.6"),
        ("/usages?project_id=x", "1.9"),
        ("/allocation_candidates?resources=VCPU:1", "1.10"),
    ],
)
def test_what_came_later_is_not_there_before(api: Any, path: str, since: str) -> None:
    before = f"1.{int(since[2:]) - 1}"
    assert api.at(since).simulate_get(path).status_code == 200
    assert api.at(before).simulate_get(path).status_code == 404


def test_delete_of_all_inventories_is_405_before_it_came(api: Any) -> None:
    path = f"/resource_providers/{a_provider(api)}/inventories"
    assert api.at("1.4").simulate_delete(path).status_code == 405
    assert api.at("1.5").simulate_delete(path).status_code == 204


def test_cache_headers_from_1_15_on(api: Any) -> None:
    path = f"/resource_providers/{a_provider(api)}"
    new, old = api.simulate_get(path), api.at("1.14").simulate_get(path)
    assert new.headers["cache-control"] == "no-cache"
    assert "last-modified" in new.headers
    assert not {"cache-control", "last-modified"} & old.headers.keys()


def test_accept_and_content_type(api: Any) -> None:
    answer = api.simulate_get("/resource_providers", headers={"Accept": "text/plain"})
    assert (answer.status_code, "Only application/json" in answer.text) == (406, True)
    answer = api.simulate_post("/resource_providers", body="x", content_type="text/plain")
    assert (answer.status_code, "media type text/plain" in answer.text) == (415, True)


def test_bodies_that_are_not_as_they_must_be(api: Any) -> None:
    answer = api.simulate_post(
        "/resource_providers", body="{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, "Malformed JSON" in answer.text) == (400, True)
    answer = api.simulate_post("/resource_providers", json={"name": "x", "color": "blue"})
    assert answer.status_code == 400
    assert "Additional properties are not allowed ('color' was unexpected)" in answer.text


def test_a_body_over_the_limit_is_413(conf: Any) -> None:
    from tests.functional.placement.conftest import Api

    conf.set_override("max_request_body_size", 1024, "placement")
    api = Api(make_app(conf, protect=header_auth))
    answer = api.simulate_post("/resource_providers", json={"name": "x" * 2000})
    assert answer.status_code == 413


def test_rules(api: Any) -> None:
    assert api.at("1.39", ADMIN).simulate_get("/resource_providers").status_code == 200
    for token in (MEMBER, READER, SYSTEM):
        answer = api.at("1.39", token).simulate_get("/resource_providers")
        assert answer.status_code == 403, token
    usages = "/usages?project_id=demo"
    assert api.at("1.39", READER).simulate_get(usages).status_code == 200
    assert api.at("1.39", OTHER).simulate_get(usages).status_code == 403
    body = {"inventories": {a_uuid(): {}}, "allocations": {}}
    assert api.at("1.39", ADMIN).simulate_post("/reshaper", json=body).status_code == 403


def test_a_database_that_is_gone_is_503_without_inner_text(conf: Any) -> None:
    from tests.functional.placement.conftest import Api

    conf.set_override("connection", "sqlite:////nonexistent/secret-name.db", "placement_database")
    answer = Api(make_app(conf, protect=header_auth)).simulate_get("/resource_providers")
    found = error(answer)
    assert answer.status_code == 503
    assert "The placement database doesn't answer." in found["detail"]
    assert "secret-name" not in answer.text
    assert Unavailable.code == "micronova.unavailable"


def test_providers_have_names_of_their_own_and_parents(api: Any) -> None:
    root = a_provider(api)
    child = a_provider(api, parent=root)
    shown = api.simulate_get(f"/resource_providers/{child}").json
    assert (shown["parent_provider_uuid"], shown["root_provider_uuid"]) == (root, root)
    taken = {"name": shown["name"], "uuid": a_uuid()}
    answer = api.simulate_post("/resource_providers", json=taken)
    assert (answer.status_code, error(answer)["code"]) == (409, "placement.duplicate_name")
    answer = api.simulate_delete(f"/resource_providers/{root}")
    assert error(answer)["code"] == "placement.resource_provider.cannot_delete_parent"
    found = api.simulate_get(f"/resource_providers?in_tree={child}").json["resource_providers"]
    assert {one["uuid"] for one in found} == {root, child}


def test_a_provider_moves_with_what_is_below_it(api: Any) -> None:
    one, two = a_provider(api), a_provider(api)
    child = a_provider(api, parent=one)
    grandchild = a_provider(api, parent=child)
    path = f"/resource_providers/{child}"
    body = {"name": "moved", "parent_provider_uuid": two}
    assert api.at("1.36").simulate_put(path, json=body).status_code == 400
    assert api.simulate_put(path, json=body).status_code == 200
    shown = api.simulate_get(f"/resource_providers/{grandchild}").json
    assert shown["root_provider_uuid"] == two
    loop = {"name": "two", "parent_provider_uuid": grandchild}
    answer = api.simulate_put(f"/resource_providers/{two}", json=loop)
    assert (answer.status_code, "loop" in answer.text) == (400, True)
    candidates = api.simulate_get(f"/allocation_candidates?resources=VCPU:1&in_tree={two}").json
    assert len(candidates["allocation_requests"]) == 3


def test_inventories_in_use_stay(api: Any) -> None:
    one = a_provider(api, VCPU=8, DISK_GB=5)
    consumer = a_uuid()
    api.simulate_put(f"/allocations/{consumer}", json=a_body(**{one: {"VCPU": 2}}))
    path = f"/resource_providers/{one}"
    answer = api.simulate_delete(f"{path}/inventories")
    assert error(answer)["code"] == "placement.inventory.inuse"
    answer = api.simulate_delete(f"{path}/inventories/VCPU")
    assert error(answer)["code"] == "placement.concurrent_update"
    assert api.simulate_delete(f"{path}/inventories/DISK_GB").status_code == 204
    assert error(api.simulate_delete(path))["code"] == "placement.resource_provider.inuse"
    set_inventory(api, one, VCPU=1)
    assert used(api, one) == {"VCPU": 2}
    assert api.simulate_delete(f"/allocations/{consumer}").status_code == 204
    assert api.simulate_delete(path).status_code == 204


@pytest.mark.parametrize("value", ["%", {}, {"total": 1, "step_size": 0}])
def test_an_inventory_of_no_name_is_refused_by_its_values_too(api: Any, value: Any) -> None:
    path = f"/resource_providers/{a_provider(api)}/inventories"
    before = api.simulate_get(path).json
    generation = before["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "inventories": {"in:": value}}
    answer = api.simulate_put(path, json=body)
    assert answer.status_code == 400
    assert api.simulate_get(path).json == before


def test_stale_generations_of_providers_are_refused(api: Any) -> None:
    path = f"/resource_providers/{a_provider(api)}"
    for noun, value in (("inventories", {}), ("traits", []), ("aggregates", [])):
        body = {noun: value, "resource_provider_generation": 99}
        answer = api.simulate_put(f"{path}/{noun}", json=body)
        assert error(answer)["code"] == "placement.concurrent_update", noun


def test_traits_and_classes_in_use_stay(api: Any) -> None:
    one = a_provider(api)
    assert api.simulate_put("/traits/CUSTOM_FAST").status_code == 201
    assert api.simulate_put("/traits/CUSTOM_FAST").status_code == 204
    body = {"traits": ["CUSTOM_FAST"], "resource_provider_generation": 1}
    assert api.simulate_put(f"/resource_providers/{one}/traits", json=body).status_code == 200
    assert api.simulate_delete("/traits/CUSTOM_FAST").status_code == 409
    assert api.simulate_delete("/traits/HW_CPU_X86_VMX").status_code == 400
    associated = api.simulate_get("/traits?associated=true").json["traits"]
    assert associated == ["CUSTOM_FAST"]
    assert api.simulate_put("/resource_classes/CUSTOM_GPU").status_code == 201
    set_inventory(api, one, CUSTOM_GPU=4)
    assert api.simulate_delete("/resource_classes/CUSTOM_GPU").status_code == 409
    renamed = api.at("1.6").simulate_put(
        "/resource_classes/CUSTOM_GPU", json={"name": "CUSTOM_CARD"}
    )
    assert renamed.status_code == 200
    candidates = api.simulate_get("/allocation_candidates?resources=CUSTOM_CARD:1").json
    assert list(candidates["provider_summaries"]) == [one]


def test_usages_of_a_project(api: Any) -> None:
    one = a_provider(api, VCPU=8, DISK_GB=9)
    for user in ("user", "friend"):
        body = a_body(**{one: {"VCPU": 2, "DISK_GB": 1}}) | {"user_id": user}
        assert api.simulate_put(f"/allocations/{a_uuid()}", json=body).status_code == 204
    usages = "/usages?project_id=project"
    assert api.at("1.37").simulate_get(usages).json == {"usages": {"VCPU": 4, "DISK_GB": 2}}
    found = api.simulate_get(f"{usages}&user_id=friend").json["usages"]
    assert found == {"INSTANCE": {"VCPU": 2, "DISK_GB": 1, "consumer_count": 1}}
    found = api.simulate_get(f"{usages}&consumer_type=all").json["usages"]
    assert found == {"all": {"VCPU": 4, "DISK_GB": 2, "consumer_count": 2}}
    assert api.simulate_get(f"{usages}&consumer_type=unknown").json == {"usages": {}}


def test_request_ids_are_reported(api: Any) -> None:
    answer = api.simulate_get("/traits/NOPE")
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    assert ids.is_uuid(answer.headers["x-openstack-request-id"].removeprefix("req-"))
