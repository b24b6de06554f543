"""Projects that don't exist: Keystone is asked, as Nova asks it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.clients.projects import Projects
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_flavor
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

QUOTA = {"quota_set": {"cores": 7}}


class Keystone:
    """Knows one project; may not be looked at where it is `closed`."""

    closed = False

    def get(self, path: str, **_: Any) -> Any:
        if self.closed:
            return SimpleNamespace(status_code=403)
        return SimpleNamespace(status_code=200 if path == "/projects/there" else 404)


@pytest.fixture
def keystone() -> Keystone:
    return Keystone()


@pytest.fixture
def api(make: MakeApi, keystone: Keystone) -> ComputeApi:
    return make(a_flavor("private", is_public=False), projects=Projects(keystone))


def quota(api: ComputeApi, method: str, project: str, *, token: str = auth.ADMIN) -> Any:
    body = QUOTA if method == "PUT" else None
    return api.request(method, f"/os-quota-sets/{project}", body, token=token)


def test_quotas_of_projects_that_are_not_there(api: ComputeApi) -> None:
    for method, tail in (("PUT", ""), ("GET", ""), ("GET", "/detail"), ("GET", "/defaults")):
        refused = quota(api, method, f"nowhere{tail}")
        assert refused.status_code == 400
        message = refused.json["badRequest"]["message"]
        assert message == "Project ID nowhere is not a valid project."
        assert quota(api, method, f"there{tail}").status_code == 200
    assert [what for what, _ in api.conductor.asked] == ["set_quota"]
    # As in Nova, what was set for a project that has gone can be forgotten.
    assert quota(api, "DELETE", "nowhere").status_code == 202


def test_where_nobody_may_look_every_project_is_believed(
    api: ComputeApi, keystone: Keystone
) -> None:
    keystone.closed = True
    assert quota(api, "PUT", "nowhere").status_code == 200


def test_users_learn_nothing_of_other_projects(api: ComputeApi) -> None:
    for project in ("nowhere", "there", "demo"):
        assert quota(api, "GET", f"{project}/defaults", token=auth.MEMBER).status_code == 200
    assert quota(api, "GET", "nowhere", token=auth.MEMBER).status_code == 403


def test_flavors_are_opened_to_projects_that_are_there(api: ComputeApi) -> None:
    def act(action: str, project: str) -> int:
        body = {action: {"tenant": project}}
        path = "/flavors/private/action"
        return api.request("POST", path, body, token=auth.ADMIN).status_code

    assert act("addTenantAccess", "nowhere") == 400
    assert act("addTenantAccess", "there") == 200
    assert act("removeTenantAccess", "nowhere") == 404
