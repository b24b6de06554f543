"""Soft-deleted servers at the API: what is shown and listed, and what may be done to them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1, vm_state="soft-delete"), a_full_server(2))


def act(api: ComputeApi, body: dict[str, Any], number: int = 1, token: str = auth.MEMBER) -> Any:
    return api.request("POST", f"/servers/{uuid_of(number)}/action", body, token=token)


def listed(api: ComputeApi, query: str = "", token: str = auth.ADMIN) -> list[str]:
    answer = api.get(f"/servers?all_tenants=1{query}", token=token)
    return [one["id"] for one in answer.json["servers"]]


def test_it_is_shown_by_its_uuid_and_listed_with_what_is_gone(api: ComputeApi) -> None:
    assert api.get(SERVER).json["server"]["status"] == "SOFT_DELETED"
    assert listed(api) == [uuid_of(2)]
    assert listed(api, "&deleted=True") == [uuid_of(1)]
    assert listed(api, "&deleted=True&status=SOFT_DELETED") == [uuid_of(1)]
    assert listed(api, "&status=SOFT_DELETED") == []


def test_restore(api: ComputeApi) -> None:
    assert act(api, {"restore": None}).status_code == 202
    assert api.conductor.asked[-1][0] == "act"
    refused = act(api, {"restore": None}, number=2)
    assert refused.status_code == 409
    assert refused.json["conflictingRequest"]["message"] == (
        f"Cannot 'restore' instance {uuid_of(2)} while it is in vm_state active"
    )
    assert act(api, {"restore": None}, token=auth.READER).status_code == 403
    assert act(api, {"restore": 1}).status_code == 202
    stop = act(api, {"os-stop": None})
    assert "while it is in vm_state soft-delete" in stop.json["conflictingRequest"]["message"]


def test_a_delete_may_be_deferred_and_a_forced_one_is_not(api: ComputeApi) -> None:
    assert api.request("DELETE", SERVER).status_code == 204
    assert api.conductor.asked[-1] == ("act", (uuid_of(1), "delete", {"deferred": True}))
    assert act(api, {"forceDelete": None}, number=2).status_code == 202
    assert api.conductor.asked[-1] == ("act", (uuid_of(2), "delete"))
