"""What a server shows, to whom, since when."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import NETWORK, ComputeApi, a_full_server, a_service, uuid_of
from tests.fixtures.listings import NOW, Row, counted
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_ledger import an_event, an_operation

pytestmark = pytest.mark.database


def a_fault(number: int, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "server_uuid": uuid_of(number),
        "operation_id": 1,
        "request_id": "req-1",
        "attempt": 1,
        "code": 500,
        "category": "storage_full",
        "message": "storage local-zfs of pve1 has 1 GiB left",
        "host": "pve1",
        "upid": "UPID:pve1:0001",
        "log_tail": ["no space left"],
        "cleaned": ["VM 100001 on pve1"],
        "left": [],
        "remedy": None,
        "created_at": NOW,
    }
    return schema.faults, values | changes


def shown(api: ComputeApi, number: int, version: str, token: str = auth.MEMBER) -> Any:
    answer = api.get(f"/servers/{uuid_of(number)}", version=version, token=token)
    assert answer.status_code == 200, answer.text
    return answer.json["server"]


@pytest.mark.parametrize(
    ("field", "since"),
    [
        ("locked", 9),
        ("description", 19),
        ("tags", 26),
        ("trusted_image_certificates", 63),
        ("server_groups", 71),
        ("locked_reason", 73),
        ("OS-EXT-SRV-ATTR:hostname", 90),
        ("pinned_availability_zone", 96),
        ("scheduler_hints", 100),
    ],
)
def test_fields_come_with_their_version(make: MakeApi, field: str, since: int) -> None:
    api = make(a_full_server(1))
    assert field not in shown(api, 1, f"2.{since - 1}")
    assert field in shown(api, 1, f"2.{since}")


def test_what_administrators_see(make: MakeApi) -> None:
    api = make(a_full_server(1))
    theirs, ours = shown(api, 1, "2.96", auth.ADMIN), shown(api, 1, "2.96")
    assert set(theirs) - set(ours) == {
        "OS-EXT-SRV-ATTR:host",
        "OS-EXT-SRV-ATTR:hypervisor_hostname",
        "OS-EXT-SRV-ATTR:instance_name",
        "OS-EXT-SRV-ATTR:kernel_id",
        "OS-EXT-SRV-ATTR:launch_index",
        "OS-EXT-SRV-ATTR:ramdisk_id",
        "OS-EXT-SRV-ATTR:reservation_id",
        "OS-EXT-SRV-ATTR:root_device_name",
        "OS-EXT-SRV-ATTR:user_data",
        "host_status",
    }
    assert theirs["host_status"] == "UP"
    assert theirs["OS-EXT-SRV-ATTR:host"] == "pve1"
    assert "pve1" not in str(ours)


def test_host_id_is_the_same_within_a_project_only(make: MakeApi) -> None:
    api = make(a_full_server(1), a_full_server(2), a_full_server(3, "other"))
    one, two = shown(api, 1, "2.1")["hostId"], shown(api, 2, "2.1")["hostId"]
    assert one == two
    assert len(one) == 56
    assert shown(api, 3, "2.1", auth.OTHER)["hostId"] != one


@pytest.mark.parametrize(
    ("service", "status"),
    [
        ({"disabled": True}, "MAINTENANCE"),
        ({"forced_down": True, "disabled": True}, "DOWN"),
        ({"last_seen_at": clock.utcnow() - datetime.timedelta(seconds=61)}, "UNKNOWN"),
        ({"last_seen_at": None}, "UNKNOWN"),
    ],
)
def test_host_status(make: MakeApi, service: dict[str, Any], status: str) -> None:
    api = make(a_full_server(1, host="pve2"), a_service("pve2", **service))
    assert shown(api, 1, "2.16", auth.ADMIN)["host_status"] == status
    listed = api.get("/servers/detail?all_tenants=1", version="2.16", token=auth.ADMIN)
    assert listed.json["servers"][0]["host_status"] == status


def test_addresses_and_flavor(make: MakeApi) -> None:
    api = make(a_full_server(1))
    old, new = shown(api, 1, "2.46"), shown(api, 1, "2.47")
    assert old["flavor"]["id"] == "m1.small"
    assert old["flavor"]["links"][0]["rel"] == "bookmark"
    assert new["flavor"] == {
        "vcpus": 1,
        "ram": 2048,
        "disk": 20,
        "ephemeral": 0,
        "swap": 0,
        "original_name": "m1.small",
        "extra_specs": {"hw:cpu_policy": "shared"},
    }
    assert new["addresses"] == {
        "vmbr0": [
            {
                "addr": "10.20.0.1",
                "version": 4,
                "OS-EXT-IPS:type": "fixed",
                "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01",
            }
        ]
    }
    assert new["image"]["id"]
    assert "properties" not in new["image"]
    assert shown(api, 1, "2.98")["image"]["properties"] == {
        "os_distro": "debian",
        "hw_machine_type": "q35",
    }


def test_an_interface_without_an_address(make: MakeApi) -> None:
    entry = {"network": "vmbr1", "network_id": NETWORK, "ip": None, "mac": "x", "version": 4}
    api = make(a_full_server(1, addresses=[entry], image_id=None))
    assert shown(api, 1, "2.1")["addresses"] == {"vmbr1": []}
    assert shown(api, 1, "2.1")["image"] == ""


def test_faults(make: MakeApi) -> None:
    api = make(
        a_full_server(1, vm_state="error"),
        a_full_server(2),
        a_fault(1, message="an older one"),
        a_fault(1),
        a_fault(2),
    )
    assert shown(api, 1, "2.1")["fault"] == {
        "code": 500,
        "created": "2026-01-31T12:00:00Z",
        "message": "The host's storage is full.",
    }
    theirs = shown(api, 1, "2.1", auth.ADMIN)["fault"]
    assert theirs["message"] == "storage local-zfs of pve1 has 1 GiB left"
    for part in ("storage_full", "req-1", "UPID:pve1:0001", "VM 100001 on pve1", "no space left"):
        assert part in theirs["details"]
    assert "fault" not in shown(api, 2, "2.1")
    listed = api.get("/servers/detail").json["servers"]
    assert [("fault" in server) for server in listed] == [False, True]


def test_an_owner_reads_why_no_host_would_do(make: MakeApi) -> None:
    inside = "None of 3 hosts has room: 4096 MiB RAM asked, 512 MiB free at most (pve2)."
    text = "No valid host was found: none has room. m1.tiny would fit."
    api = make(
        a_full_server(1, vm_state="error"),
        a_fault(1, category="no_valid_host", message=inside, owner_message=text),
        a_full_server(2, vm_state="error"),
        a_fault(2, category="of a newer release"),
        a_full_server(3, vm_state="error"),
        a_fault(3, category="no_valid_host", message=inside),
    )
    assert shown(api, 1, "2.1")["fault"]["message"] == text
    assert shown(api, 1, "2.1", auth.ADMIN)["fault"]["message"] == inside
    assert shown(api, 2, "2.1")["fault"]["message"] == "The operation failed."
    assert shown(api, 3, "2.1")["fault"]["message"] == "No host can take the server."


def test_statuses(make: MakeApi) -> None:
    api = make(
        a_full_server(1, task_state="rebooting_hard"),
        a_full_server(2, vm_state="stopped", task_state="powering-on"),
        a_full_server(3, vm_state="building"),
        a_full_server(4, task_state="deleting"),
    )
    assert [shown(api, number, "2.1")["status"] for number in range(1, 5)] == [
        "HARD_REBOOT",
        "SHUTOFF",
        "BUILD",
        "ACTIVE",
    ]
    assert shown(api, 3, "2.1")["progress"] == 0
    assert "progress" not in shown(api, 2, "2.1")


def test_the_progress_of_a_copy(make: MakeApi) -> None:
    def operation(number: int, **changes: Any) -> Row:
        found = an_operation(number, f"req-{number}", **{"state": "running", **changes})
        return found[0], {**found[1], "resource_id": uuid_of(number), "finished_at": None}

    def step(number: int, percent: int) -> Row:
        values = {"operation_id": number, "finished_at": None, "result": None}
        detail = {"progress": {"percent": percent}}
        return an_event(f"compute_{percent}", percent, **values, detail=detail)

    api = make(
        a_full_server(1, task_state="migrating"),
        operation(1),
        step(1, 37),
        a_full_server(2, vm_state="building", task_state="spawning"),
        operation(2),
        an_event("compute_create_vm", 1, operation_id=2, finished_at=None),
        a_full_server(3, task_state="resize_migrating"),
        operation(3, state="done"),
        step(3, 88),
        a_full_server(4),
    )
    # As an older release writes it: without any.
    api.add(an_event("compute_before", 2, operation_id=1, finished_at=None, result=None))
    wanted = {uuid_of(1): 37, uuid_of(2): 0, uuid_of(3): 0, uuid_of(4): 0}
    for version in ("2.1", "2.100"):
        with counted(api.reader) as statements:
            listed = api.get("/servers/detail", version=version).json["servers"]
            assert statements() == 1
        assert {one["id"]: one["progress"] for one in listed} == wanted
        with counted(api.reader) as statements:
            assert shown(api, 1, version)["progress"] == 37
            assert statements() == 1
