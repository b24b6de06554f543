"""What the HA manager does with one VM, in the rows that a real server answered."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.facts import HaService
from compute.hypervisor.proxmox.ha.service import service

#: as captured (``ha.status.current``), without what isn't read
HEAD = [
    {"id": "quorum", "type": "quorum", "node": "pve1", "quorate": 1, "status": "OK"},
    {"id": "lrm:pve2", "type": "lrm", "node": "pve2", "status": "pve2 (idle, watchdog standby)"},
]
STATUS = [
    {"type": "cluster", "name": "c", "quorate": 1},
    {"type": "node", "name": "pve1", "online": 1},
    {"type": "node", "name": "pve2", "online": 0},
]


def look(**row: Any) -> HaService | None:
    one = {"id": "service:vm:590", "type": "service", "sid": "vm:590", "node": "pve1", **row}
    other = {**one, "sid": "vm:59", "state": "error"}
    return service([*HEAD, other, one], STATUS, 590)


@pytest.mark.parametrize(
    ("row", "recovered"),
    [
        ({"state": "starting", "crm_state": "started", "request_state": "started"}, True),
        ({"state": "relocate", "crm_state": "relocate", "request_state": "started"}, True),
        ({"state": "fence", "crm_state": "fence", "request_state": "started"}, True),
        ({"state": "recovery", "crm_state": "recovery", "request_state": "started"}, True),
        ({"state": "stopped", "crm_state": "stopped", "request_state": "stopped"}, True),
        ({"state": "error", "crm_state": "error", "request_state": "started"}, False),
        ({"state": "disabled", "crm_state": "stopped", "request_state": "disabled"}, False),
    ],
)
@pytest.mark.parametrize(("node", "online"), [("pve1", True), ("pve2", False), ("pve9", False)])
def test_a_resource(row: dict[str, Any], recovered: bool, node: str, online: bool) -> None:
    found = look(**row, node=node)
    assert found == HaService(590, node, row["state"], row["request_state"], online)
    assert found.is_recovered == recovered


def test_none_is_managed() -> None:
    assert look(state="ignored", request_state="ignored") is None
    assert service(HEAD, STATUS, 590) is None
