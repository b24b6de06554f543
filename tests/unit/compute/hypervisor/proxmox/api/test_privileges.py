"""Which privileges a token may lack, and the commands that grant them."""

from __future__ import annotations

import pytest

from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.settings import Token

TOKEN = Token("a@pve", "t", "")


@pytest.mark.parametrize(
    ("version", "agent", "monitor"),
    [
        ("8.4.14", "VM.Monitor", "VM.Monitor"),
        ("9.2.11", "VM.GuestAgent.Unrestricted", "Sys.Audit"),
    ],
)
def test_what_may_be_lacking_is_called_as_the_version_calls_it(
    version: str, agent: str, monitor: str
) -> None:
    listed = {one for need in privileges.optional(version) for one in need.privileges}
    assert listed == {
        "VM.Migrate",
        "VM.Console",
        "VM.Backup",
        "VM.Snapshot",
        agent,
        "Sys.Modify",
        monitor,
    }
    assert privileges.steering(version, "/vms/100")[1].privileges == (monitor,)


def test_what_is_on_the_root_is_inherited_by_nothing() -> None:
    lines = privileges.grant_lines(privileges.steering("9.0"), TOKEN)
    assert lines[2:4] == [
        "pveum acl modify /vms --tokens 'a@pve!t' --roles MicronovaAudit",
        "{ pveum role add MicronovaSteer --privs 'Sys.Modify'"
        " || pveum role modify MicronovaSteer --append 1 --privs 'Sys.Modify'; }",
    ]
    assert lines[4:] == [
        "pveum acl modify / --propagate 0 --users 'a@pve' --roles MicronovaSteer",
        "pveum acl modify / --propagate 0 --tokens 'a@pve!t' --roles MicronovaSteer",
    ]
