"""Diagnostics: who may see those of a server, and in which form."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Unavailable
from common.messages.guests import Diagnostics, DiskUse, GuestTarget, NicUse
from common.resources.states import PowerState
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

FOUND = Diagnostics(
    PowerState.RUNNING,
    uptime_seconds=60,
    vcpus=2,
    cpu_percent=50,
    memory_mib=2048,
    memory_used_mib=512,
    config_drive=True,
    disks=(DiskUse("scsi0", 1, 2, 3, 4, 0),),
    nics=(NicUse("tap100i0", "fa:16:3e:00:00:01", 220, 656),),
)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    made = make(a_full_server(1), a_full_server(2, host=None))
    made.conductor.agents.diagnose.return_value = FOUND
    return made


def ask(
    api: ComputeApi, version: str, number: int = 1, token: str = auth.ADMIN, query: str = ""
) -> Any:
    return api.get(f"/servers/{uuid_of(number)}/diagnostics{query}", version=version, token=token)


def test_the_form_before_2_48(api: ComputeApi) -> None:
    assert ask(api, "2.47").json == {
        "memory": 2 << 20,
        "memory-actual": 2 << 20,
        "memory-rss": 512 << 10,
        "scsi0_read_req": 2,
        "scsi0_read": 1,
        "scsi0_write_req": 4,
        "scsi0_write": 3,
        "scsi0_errors": 0,
        "tap100i0_rx": 220,
        "tap100i0_tx": 656,
    }
    [asked] = [call.args[0].target for call in api.conductor.agents.diagnose.mock_calls]
    assert asked == GuestTarget(uuid_of(1), "w1", "c1", "pve1", 100_001)


def test_the_standardized_form(api: ComputeApi) -> None:
    shown = ask(api, "2.48").json
    assert {name: shown[name] for name in ("state", "driver", "hypervisor", "uptime")} == {
        "state": "running",
        "driver": "libvirt",
        "hypervisor": "kvm",
        "uptime": 60,
    }
    assert (shown["num_cpus"], shown["num_nics"], shown["num_disks"]) == (2, 1, 1)
    assert shown["memory_details"] == {"maximum": 2048, "used": 512}
    assert shown["cpu_details"] == [
        {"id": number, "time": None, "utilisation": None} for number in (0, 1)
    ]
    [nic] = shown["nic_details"]
    assert (nic["mac_address"], nic["rx_octets"], nic["tx_octets"], nic["rx_drop"]) == (
        *("fa:16:3e:00:00:01", 220, 656),
        None,
    )
    assert shown["disk_details"] == [
        {
            "read_bytes": 1,
            "read_requests": 2,
            "write_bytes": 3,
            "write_requests": 4,
            "errors_count": 0,
        }
    ]
    assert ask(api, "2.101", query="?x=1").status_code == 200
    assert ask(api, "2.102", query="?x=1").status_code == 400


def test_refusals(api: ComputeApi) -> None:
    assert ask(api, "2.48", token=auth.MEMBER).status_code == 403
    assert ask(api, "2.48", token=auth.OTHER).status_code == 404
    fault = ask(api, "2.48", number=2)
    assert fault.status_code == 409
    assert fault.json["conflictingRequest"]["message"] == f"Instance {uuid_of(2)} is not ready"
    api.conductor.agents.diagnose.return_value = Diagnostics(PowerState.SHUTDOWN)
    fault = ask(api, "2.48")
    assert fault.status_code == 409
    assert fault.json["conflictingRequest"]["message"] == (
        f"Cannot 'get_diagnostics' instance {uuid_of(1)} while it is in power state shutdown"
    )
    api.conductor.agents.diagnose.side_effect = Unavailable("No answer.")
    assert ask(api, "2.48").status_code == 503
