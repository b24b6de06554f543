"""Metadata, tags and addresses of a server."""

from __future__ import annotations

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1, meta={"a": "1", "b": "2"}, tags=["x", "y"]))


def test_metadata(api: ComputeApi) -> None:
    path = f"{SERVER}/metadata"
    assert api.get(path).json == {"metadata": {"a": "1", "b": "2"}}
    assert api.get(f"{path}/a").json == {"meta": {"a": "1"}}
    added = api.request("POST", path, {"metadata": {"b": "3", "c": "4"}})
    assert added.json == {"metadata": {"a": "1", "b": "3", "c": "4"}}
    assert api.request("PUT", f"{path}/a", {"meta": {"a": "5"}}).json == {"meta": {"a": "5"}}
    assert api.request("DELETE", f"{path}/b").status_code == 204
    assert api.get(path).json == {"metadata": {"a": "5", "c": "4"}}
    assert api.request("PUT", path, {"metadata": {}}).json == {"metadata": {}}


def test_metadata_refused(api: ComputeApi) -> None:
    path = f"{SERVER}/metadata"
    missing = api.get(f"{path}/nope")
    assert missing.json["itemNotFound"]["message"] == "Metadata item was not found"
    assert api.request("DELETE", f"{path}/nope").status_code == 404
    wrong = api.request("PUT", f"{path}/a", {"meta": {"b": "1"}})
    assert wrong.json["badRequest"]["message"] == "Request body and URI mismatch"
    assert api.request("POST", path, {"metadata": {"a/b": "1"}}).status_code == 400
    assert api.request("POST", path, {"metadata": {"a": "x" * 256}}).status_code == 400
    many = {f"k{number}": "v" for number in range(130)}
    assert api.request("POST", path, {"metadata": many}).status_code == 403
    assert api.request("POST", path, {"metadata": {}}, token=auth.READER).status_code == 403


def test_tags(api: ComputeApi) -> None:
    path, version = f"{SERVER}/tags", "2.26"
    assert api.get(path, version="2.25").status_code == 404
    assert api.get(path, version=version).json == {"tags": ["x", "y"]}
    assert api.get(f"{path}/x", version=version).status_code == 204
    assert api.get(f"{path}/z", version=version).status_code == 404
    added = api.request("PUT", f"{path}/z", version=version)
    assert added.status_code == 201
    assert added.headers["location"].endswith(f"{SERVER}/tags/z")
    assert api.request("PUT", f"{path}/z", version=version).status_code == 204
    assert api.request("PUT", f"{path}/a,b", version=version).status_code == 400
    assert api.request("DELETE", f"{path}/x", version=version).status_code == 204
    assert api.request("DELETE", f"{path}/x", version=version).status_code == 404
    replaced = api.request("PUT", path, {"tags": ["p", "q", "p"]}, version=version)
    assert replaced.json == {"tags": ["p", "q"]}
    assert api.request("DELETE", path, version=version).status_code == 204
    assert api.get(path, version=version).json == {"tags": []}


def test_tags_change_while_settled_only(make: MakeApi) -> None:
    api = make(a_full_server(1, vm_state="building"))
    answer = api.request("PUT", f"{SERVER}/tags/x", version="2.26")
    assert answer.status_code == 409
    assert answer.json["conflictingRequest"]["message"] == (
        f"Cannot 'update tag' instance {uuid_of(1)} while it is in vm_state building"
    )


def test_no_more_than_fifty_tags(make: MakeApi) -> None:
    api = make(a_full_server(1, tags=[str(number) for number in range(50)]))
    answer = api.request("PUT", f"{SERVER}/tags/x", version="2.26")
    assert "exceeded the per-server limit 50" in answer.json["badRequest"]["message"]


def test_ips(api: ComputeApi) -> None:
    assert api.get(f"{SERVER}/ips").json == {
        "addresses": {"vmbr0": [{"version": 4, "addr": "10.20.0.1"}]}
    }
    assert api.get(f"{SERVER}/ips/vmbr0").json == {"vmbr0": [{"version": 4, "addr": "10.20.0.1"}]}
    assert api.get(f"{SERVER}/ips/vmbr9").status_code == 404
