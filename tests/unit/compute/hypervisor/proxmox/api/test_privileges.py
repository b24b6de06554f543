"""Which privileges a token may lack, and the commands that grant them."""

from __future__ import annotations

import pytest

from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.settings import Token

TOKEN = Token("a@pve", "t", "")


@pytest.mark.parametrize(
    ("version", "agent", "ping", "monitor"),
    [
        ("8.4.14", "VM.Monitor", "VM.Monitor", "VM.Monitor"),
        ("9.2.11", "VM.GuestAgent.Unrestricted", "VM.GuestAgent.Audit", "Sys.Audit"),
    ],
)
def test_what_may_be_lacking_is_called_as_the_version_calls_it(
    version: str, agent: str, ping: str, monitor: str
) -> None:
    listed = {one for need in privileges.optional(version) for one in need.privileges}
    assert listed == {
        "VM.Migrate",
        "VM.Console",
        "VM.Backup",
        "VM.Snapshot",
        agent,
        ping,
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


def test_what_a_path_inherits_is_granted_with_what_it_lacks() -> None:
    """A role on a path takes the place of what the path inherits."""
    missing = [privileges.Need("/vms", ("VM.Migrate",), "moves")]
    everything = {
        "VM.Allocate": 1,
        "VM.Console": 1,
        "Sys.Audit": 1,
        "Pool.Audit": 1,
        "VM.Audit": 0,
    }
    names = "VM.Allocate,VM.Console,VM.Migrate"
    for granted in ({"/": everything}, {"/": everything, "/vms": _propagated(everything)}):
        [role, audit] = privileges.roles(privileges._with_inherited(missing, granted))
        assert (role.name, ",".join(role.privileges), role.paths) == (
            "Micronova",
            names,
            ("/vms",),
        )
        assert (audit.name, audit.paths) == ("MicronovaAudit", ("/vms",))
        assert f"--privs '{names}'" in privileges.grant_lines(missing, TOKEN, granted)[0]


def test_to_a_role_of_the_path_another_one_is_added() -> None:
    missing = [privileges.Need("/vms", ("VM.Migrate",), "moves")]
    granted = {"/": {"Sys.Audit": 1}, "/vms": {"VM.Allocate": 1, "VM.Console": 1}}
    assert list(privileges._with_inherited(missing, granted)) == missing
    assert list(privileges._with_inherited(missing, {})) == missing


def _propagated(granted: dict[str, int]) -> dict[str, int]:
    return {name: 1 for name, propagates in granted.items() if propagates}


def test_the_larger_privilege_does_where_any_of_both_is_asked_for() -> None:
    pings = privileges.of(Purpose.PINGS, "9.2")
    assert privileges.lacking({"/": {"VM.GuestAgent.Unrestricted": 1}}, pings) == []
    assert privileges.lacking({"/": {"VM.GuestAgent.Audit": 1}}, pings) == []
    assert privileges.lacking({"/": {"VM.Audit": 1}}, pings) == pings
