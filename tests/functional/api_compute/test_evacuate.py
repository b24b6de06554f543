"""Evacuation: who may, with which bodies, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import Unavailable
from common.messages.facts import HaService
from common.messages.scheduling import Decision
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, a_service, uuid_of
from tests.fixtures.listings import NOW
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

UUID = uuid_of(1)
IN_USE = (400, "Compute service of pve1 is still in use.")
REFUSED = (
    f"Instance {UUID} can't be evacuated by a request: Proxmox VE changes no VM of a node that "
    "is gone (pve1), and a second VM on its disk could destroy it. "
)
UNMANAGED = "Its VM is no HA resource. "
BY_HAND = (
    "Once node pve1 is powered off and can't come back by itself, as root on pve2: mv "
    "/etc/pve/nodes/pve1/qemu-server/100001.conf /etc/pve/nodes/pve2/qemu-server/ - the record "
    "follows."
)
REFUSED_BY_HAND = REFUSED + UNMANAGED + BY_HAND
LOCAL = {"name": "local", "type": "dir", "shared": False, "active": True}
LOCAL |= {"total_gib": 100, "available_gib": 50, "content": ["images"]}


def lose(api: ComputeApi) -> ComputeApi:
    """The agent of pve1 is silent."""
    with api.writer.begin() as connection:
        mine = schema.services.c.host == "pve1"
        connection.execute(sa.update(schema.services).where(mine).values(last_seen_at=NOW))
    return api


def cloud(make: MakeApi, facts: Any = None, **changes: Any) -> ComputeApi:
    """A server on pve1, and pve2 beside it, which would take it."""
    api = make(a_full_server(1, **changes), a_service("pve2"), a_host("pve2"))
    with api.writer.begin() as connection:
        table, values = a_host(facts=facts or {})
        mine = table.c.host == "pve1"
        connection.execute(sa.update(table).where(mine).values(facts=values["facts"]))
    api.conductor.scheduler.preview.return_value = [Decision(UUID, "pve2", "uuid-pve2")]
    api.conductor.agents.find_ha_service.return_value = None
    return api


def evacuate(
    api: ComputeApi, version: str = "2.104", token: str = auth.ADMIN, **asked: Any
) -> tuple[int, str]:
    before = everything(api)
    body = {"evacuate": asked}
    answer = api.request("POST", f"/servers/{UUID}/action", body, token=token, version=version)
    assert everything(api) == before
    [fault] = answer.json.values()
    assert fault["code"] == answer.status_code
    return answer.status_code, str(fault["message"])


def everything(api: ComputeApi) -> list[Any]:
    """What an evacuation could have changed."""
    tables = (schema.servers, schema.operations, schema.migrations, schema.hosts)
    with api.reader.begin() as connection:
        return [connection.execute(sa.select(table)).all() for table in tables]


@pytest.mark.parametrize("state", ["active", "stopped", "error"])
def test_the_operator_gets_the_command(make: MakeApi, state: str) -> None:
    api = lose(cloud(make, vm_state=state))
    assert evacuate(api) == (400, REFUSED_BY_HAND)
    [(_, (request,)), _] = api.conductor.scheduler.preview.call_args
    assert (request.ignore_hosts, request.force_host, request.cluster) == (("pve1",), None, "c1")


def test_a_named_host_is_asked_about(make: MakeApi) -> None:
    api = lose(cloud(make))
    assert evacuate(api, host="pve2") == (400, REFUSED_BY_HAND)
    [(_, (request,)), _] = api.conductor.scheduler.preview.call_args
    assert request.force_host == "pve2"


def managed(
    api: ComputeApi, state: str = "started", wanted: str = "started", **more: bool
) -> None:
    """The VM is an HA resource."""
    seen = HaService(100001, "pve1", state, wanted, online=more.get("online", False))
    api.conductor.agents.find_ha_service.return_value = seen


@pytest.mark.parametrize("state", ["active", "stopped", "error"])
@pytest.mark.parametrize(
    ("version", "asked", "answer"),
    [
        ("2.13", {"onSharedStorage": True}, {"adminPass": None}),
        ("2.14", {}, None),
        ("2.104", {}, None),
    ],
)
def test_what_the_ha_manager_recovers_is_accepted(
    make: MakeApi, state: str, version: str, asked: Any, answer: Any
) -> None:
    api = lose(cloud(make, vm_state=state, task_state="powering-off"))
    managed(api)
    path, body = f"/servers/{UUID}/action", {"evacuate": asked}
    found = api.request("POST", path, body, token=auth.ADMIN, version=version)
    assert (found.status_code, found.json if answer else found.text) == (200, answer or "")
    server = api.get(f"/servers/{UUID}", token=auth.ADMIN).json["server"]
    shown = (server["OS-EXT-STS:vm_state"], server["OS-EXT-STS:task_state"])
    assert shown == (state, "rebuilding")
    path = f"/os-migrations?instance_uuid={UUID}&migration_type=evacuation"
    [row] = api.get(path, token=auth.ADMIN, version="2.59").json["migrations"]
    assert (row["status"], row["source_compute"], row["dest_compute"]) == (
        "accepted",
        "pve1",
        None,
    )
    api.conductor.scheduler.preview.assert_not_called()


def test_no_host_is_named_to_the_ha_manager(make: MakeApi) -> None:
    api = lose(cloud(make))
    managed(api)
    code, why = evacuate(api, host="pve2")
    assert (code, "chooses the node itself" in why, "migrate it to pve2" in why) == (
        400,
        True,
        True,
    )


def test_a_node_that_its_cluster_sees_is_in_use(make: MakeApi) -> None:
    """Its agent alone is gone: the manager has nothing to recover."""
    api = lose(cloud(make))
    managed(api, online=True)
    assert evacuate(api) == IN_USE


@pytest.mark.parametrize(
    ("state", "wanted", "shown"),
    [("error", "started", "error"), ("disabled", "disabled", "disabled")],
)
def test_what_the_ha_manager_leaves(make: MakeApi, state: str, wanted: str, shown: str) -> None:
    api = lose(cloud(make))
    managed(api, state, wanted)
    why = f"The HA manager has its VM in state {shown}, and won't recover it. "
    assert evacuate(api) == (400, REFUSED + why + BY_HAND)


def test_nobody_knows_what_the_ha_manager_does(make: MakeApi) -> None:
    api = lose(cloud(make))
    api.conductor.agents.find_ha_service.side_effect = Unavailable("It does not answer.")
    why = "If its VM is an HA resource in state started, Proxmox VE recovers it by itself. "
    assert evacuate(api) == (400, REFUSED + why + BY_HAND)


def test_no_host_would_take_it(make: MakeApi) -> None:
    api = lose(cloud(make))
    decision = Decision(UUID, None, reason="No valid host was found: none left.")
    api.conductor.scheduler.preview.return_value = [decision]
    why = UNMANAGED + "No other host would take it. No valid host was found: none left."
    assert evacuate(api) == (400, REFUSED + why)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (
            {"vm_storage": "local", "storages": [LOCAL]},
            "its disk is on the node's own storage local",
        ),
        ({"pinned": {"100001": "its config drive is on local"}}, "its config drive is on local"),
    ],
)
def test_what_the_node_keeps(make: MakeApi, facts: Any, why: str) -> None:
    api = lose(cloud(make, facts))
    text = f"It can't be evacuated: {why}. Bring node pve1 back."
    assert evacuate(api) == (400, REFUSED + text)
    api.conductor.scheduler.preview.assert_not_called()


def test_a_host_in_use(make: MakeApi) -> None:
    assert evacuate(cloud(make)) == IN_USE


def test_a_node_that_its_neighbours_see_offline_is_not_in_use(make: MakeApi) -> None:
    assert evacuate(cloud(make, {"online": False})) == (400, REFUSED_BY_HAND)


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("pve1", (400, "The target host can't be the same one.")),
        ("nowhere", (404, "Compute host nowhere not found.")),
    ],
)
def test_hosts_that_are_none(make: MakeApi, host: str, answer: tuple[int, str]) -> None:
    # As in Nova, whatever state the server is in, and whether or not its host is in use.
    assert evacuate(cloud(make, vm_state="paused"), host=host) == answer


@pytest.mark.parametrize(
    ("changes", "attribute"),
    [
        ({"vm_state": "paused"}, "vm_state paused"),
        ({"vm_state": "rescued"}, "vm_state rescued"),
        ({"launched_at": None}, "launched_at None"),
    ],
)
def test_states(make: MakeApi, changes: Any, attribute: str) -> None:
    text = f"Cannot 'evacuate' instance {UUID} while it is in {attribute}"
    assert evacuate(lose(cloud(make, **changes))) == (409, text)


@pytest.mark.parametrize(
    "changes", [{"task_state": "powering-off"}, {"locked_by": "admin"}, {"locked_by": "owner"}]
)
def test_neither_tasks_nor_locks_matter(make: MakeApi, changes: Any) -> None:
    assert evacuate(lose(cloud(make, **changes))) == (400, REFUSED_BY_HAND)


def test_one_without_a_vm(make: MakeApi) -> None:
    api = cloud(make, vm_state="error", host=None, node=None, vmid=None)
    assert evacuate(api) == (400, f"Instance {UUID} can't be evacuated: it has no VM.")


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        ("2.1", {"onSharedStorage": False}),
        ("2.1", {"onSharedStorage": "True", "host": "pve2"}),
        ("2.13", {"onSharedStorage": "no", "adminPass": "secret"}),
        ("2.14", {"adminPass": "secret"}),
        ("2.29", {"force": False}),
        ("2.67", {"force": "true", "host": "pve2"}),
        ("2.68", {"host": "pve2"}),
        ("2.95", {}),
    ],
)
def test_bodies(make: MakeApi, version: str, asked: Any) -> None:
    assert evacuate(cloud(make), version, **asked) == IN_USE


@pytest.mark.parametrize(
    ("version", "asked", "named"),
    [
        ("2.1", {}, "onSharedStorage"),
        ("2.13", {"onSharedStorage": 5}, "onSharedStorage"),
        ("2.14", {"onSharedStorage": False}, "onSharedStorage"),
        ("2.28", {"force": True}, "force"),
        ("2.29", {"force": 5}, "force"),
        ("2.68", {"force": False}, "force"),
        ("2.95", {"host": ""}, "host"),
        ("2.95", {"host": "a b"}, "host"),
        ("2.95", {"host": None}, "host"),
        ("2.95", {"adminPass": 5}, "adminPass"),
        ("2.29", {"force": "1"}, "Can't force to a non-provided destination"),
        (
            "2.13",
            {"onSharedStorage": "1", "adminPass": "secret"},
            "admin password can't be changed on existing disk",
        ),
    ],
)
def test_bodies_that_are_wrong(make: MakeApi, version: str, asked: Any, named: str) -> None:
    code, why = evacuate(cloud(make), version, **asked)
    assert (code, named in why) == (400, True)


def test_without_a_scheduler(make: MakeApi) -> None:
    api = lose(cloud(make))
    api.conductor.scheduler.preview.side_effect = Unavailable("No scheduler answers.")
    assert evacuate(api)[0] == 503


def test_who_may(make: MakeApi) -> None:
    assert evacuate(cloud(make), token=auth.MEMBER)[0] == 403
