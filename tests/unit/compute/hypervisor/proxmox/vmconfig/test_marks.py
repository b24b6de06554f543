"""What is said of a VM that isn't ours is what its configuration shows."""

from __future__ import annotations

import pytest

from compute.hypervisor.proxmox.vmconfig import marks

UUID = "5b0d2b6f-4a0b-4a57-9f0e-000000000001"
OTHER = "5b0d2b6f-4a0b-4a57-9f0e-000000000002"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "it carries no marks of micronova's"),
        ({"description": "somebody's own"}, "it carries no marks of micronova's"),
        ({"description": f"micronova: server={OTHER}"}, f"it is server {OTHER}"),
        (
            {"description": "micronova: template=i\nmicronova: cloud=blue"},
            "it is template i of cloud blue",
        ),
        (
            {"description": f"micronova: server={UUID}", "smbios1": f"uuid={OTHER}"},
            f"its SMBIOS UUID is {OTHER}, its description names {UUID}",
        ),
        (
            {"description": f"micronova: server={UUID}"},
            f"its SMBIOS UUID is missing, its description names {UUID}",
        ),
    ],
)
def test_why_not(config: dict[str, str], why: str) -> None:
    mark = marks.server_mark(UUID, "")
    assert marks.owner(config, mark) is marks.Owner.FOREIGN
    assert marks.why_not(config, mark) == why
