"""Live migration: who may, with which bodies, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import FLAVOR, ComputeApi, a_full_server, a_host, a_service, uuid_of
from tests.fixtures.volumes import SHARED_STORAGE
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
OLD = {"host": None, "block_migration": False, "disk_over_commit": False}


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1))


def live(
    api: ComputeApi, token: str = auth.ADMIN, version: str = "2.104", **asked: Any
) -> tuple[int, str]:
    body = {"os-migrateLive": {"host": None, "block_migration": "auto"} | asked}
    answer = api.request("POST", f"{SERVER}/action", body, token=token, version=version)
    if answer.status_code == 202:
        return 202, ""
    [fault] = answer.json.values()
    return answer.status_code, str(fault["message"])


def test_it_is_accepted_and_shown(api: ComputeApi) -> None:
    assert live(api) == (202, "")
    shown = api.get(SERVER, token=auth.ADMIN, version="2.104").json["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("MIGRATING", "migrating")
    [listed] = api.get(f"{SERVER}/migrations", token=auth.ADMIN, version="2.104").json[
        "migrations"
    ]
    assert (listed["status"], listed["source_compute"]) == ("preparing", "pve1")
    [row] = api.get("/os-migrations", token=auth.ADMIN, version="2.104").json["migrations"]
    assert row["migration_type"] == "live-migration"
    code, why = live(api)
    assert code == 409
    assert why == (
        f"Cannot 'os-migrateLive' instance {uuid_of(1)} while it is in task_state migrating"
    )


def on_storage(make: MakeApi, *, shared: bool, from_volume: bool = False) -> ComputeApi:
    """A server on a host whose VMs are on such a storage."""
    facts = {"storages": [{**SHARED_STORAGE, "shared": shared}], "vm_storage": "data"}
    flavor = {**FLAVOR, "volume_backed": from_volume}
    api = make(a_full_server(1, host="pve2", node="pve2", flavor=flavor))
    api.add(a_service("pve2"), a_host("pve2", facts=facts))
    return api


@pytest.mark.parametrize("version", ["2.1", "2.25", "2.33", "2.34", "2.104"])
@pytest.mark.parametrize(("shared", "where"), [(True, "local"), (False, "shared")])
def test_what_the_storage_does_not_allow_is_refused_in_the_call_before_2_34(
    make: MakeApi, version: str, shared: bool, where: str
) -> None:
    """Since then the operation says so."""
    api = on_storage(make, shared=shared)
    asked: dict[str, Any] = {"block_migration": shared}
    if version == "2.1":
        asked["disk_over_commit"] = False
    status, why = live(api, version=version, **asked)
    if version in ("2.34", "2.104"):
        assert status == 202
        return
    assert (status, why.startswith(f"pve2 is not on {where} storage: ")) == (400, True)
    assert api.get(SERVER).json["server"]["status"] == "ACTIVE"
    # What fits is accepted.
    assert live(api, version=version, **{**asked, "block_migration": not shared})[0] == 202


@pytest.mark.parametrize("block", [True, False])
def test_a_volume_to_boot_from_on_shared_storage_needs_no_copy(make: MakeApi, block: bool) -> None:
    """Whatever storage the host's VMs are on."""
    api = on_storage(make, shared=False, from_volume=True)
    status, why = live(api, version="2.33", block_migration=block)
    words = "pve2 is not on local storage: Block migration can not be used with shared storage."
    assert (status, why) == ((400, words) if block else (202, ""))


@pytest.mark.parametrize(
    ("version", "asked", "code"),
    [
        ("2.1", OLD, 202),
        ("2.1", OLD | {"block_migration": "False"}, 202),
        ("2.1", {"block_migration": "auto", "disk_over_commit": False}, 400),
        ("2.24", {"block_migration": False}, 400),
        ("2.25", OLD, 400),
        ("2.25", {}, 202),
        ("2.29", {"force": True}, 400),
        ("2.30", {"force": False}, 202),
        ("2.30", {"force": True}, 400),
        ("2.68", {"force": False}, 400),
        ("2.68", {"block_migration": 5}, 400),
    ],
)
def test_bodies(api: ComputeApi, version: str, asked: Any, code: int) -> None:
    assert live(api, version=version, **asked)[0] == code


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("pve1", f"Unable to migrate instance ({uuid_of(1)}) to current host (pve1)."),
        ("nowhere", "Compute host nowhere could not be found."),
    ],
)
def test_hosts_that_are_none(api: ComputeApi, host: str, why: str) -> None:
    assert live(api, host=host) == (400, why)
    assert api.get(SERVER, version="2.104").json["server"]["status"] == "ACTIVE"


def test_forced_without_a_host(api: ComputeApi) -> None:
    assert live(api, version="2.30", force=True) == (
        400,
        "Can't force to a non-provided destination",
    )


def test_who_may(api: ComputeApi) -> None:
    assert live(api, auth.MEMBER)[0] == 403


@pytest.mark.parametrize(
    ("changes", "attribute"),
    [({"vm_state": "stopped"}, "vm_state stopped"), ({"vm_state": "error"}, "vm_state error")],
)
def test_states(make: MakeApi, changes: Any, attribute: str) -> None:
    code, why = live(make(a_full_server(1, **changes)))
    assert code == 409
    assert why == f"Cannot 'os-migrateLive' instance {uuid_of(1)} while it is in {attribute}"


def test_a_paused_one_may(make: MakeApi) -> None:
    api = make(a_full_server(1, vm_state="paused"))
    assert live(api) == (202, "")
    assert api.get(SERVER, version="2.104").json["server"]["status"] == "MIGRATING"


def steer(api: ComputeApi, method: str, version: str, number: str = "1") -> tuple[int, str]:
    path, body = f"{SERVER}/migrations/{number}", None
    if method == "POST":
        path, body = f"{path}/action", {"force_complete": None}
    answer = api.request(method, path, body, token=auth.ADMIN, version=version)
    if answer.status_code == 202:
        return 202, ""
    [fault] = answer.json.values()
    return answer.status_code, str(fault["message"])


def test_abort_and_force_complete_as_nova_refuses_them(api: ComputeApi) -> None:
    assert steer(api, "DELETE", "2.23")[0] == 404
    assert steer(api, "POST", "2.21")[0] == 404
    assert steer(api, "DELETE", "2.24") == (
        409,
        f"Cannot 'abort live migration' instance {uuid_of(1)} while it is in task_state None",
    )
    assert live(api) == (202, "")
    missing = f"Migration 77 not found for instance {uuid_of(1)}."
    assert steer(api, "DELETE", "2.104", "77") == (404, missing)
    early = f"Migration 1 state of instance {uuid_of(1)} is preparing. Cannot {{}} while the "
    early += "migration is in this state."
    assert steer(api, "DELETE", "2.64") == (400, early.format("abort live migration"))
    assert steer(api, "POST", "2.104") == (400, early.format("force complete"))
    assert steer(api, "DELETE", "2.65") == (202, "")
