"""What is said of a VM that isn't ours is what its configuration shows."""

from __future__ import annotations

import pytest

from common.messages.commands import Address, BackUpVolume, Nic
from common.messages.facts import MarkedAddress, MarkedPort
from common.resources.states import ResourceType
from compute.hypervisor.proxmox.vmconfig import marks

UUID = "5b0d2b6f-4a0b-4a57-9f0e-000000000001"
VOLUME = "5b0d2b6f-4a0b-4a57-9f0e-000000000002"
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


def test_the_line_of_a_port_is_read_as_it_is_written() -> None:
    nic = Nic(
        *("port", UUID, "mine", "mnabcdef", "AA:BB:CC:00:00:01"),
        **{"ip": "10.9.0.5", "cidr": "10.9.0.0/24", "gateway": "10.9.0.1", "dns": ("10.9.0.53",)},
        second=Address("fd00::5", "fd00::/64", dns=("fd00::1", "fd00::2")),
        more=(Address("10.8.0.7", "10.8.0.0/16"),),
        network_owner="demo",
    )
    [port] = marks.ports_of({"description": marks.port_line(nic)}).values()
    assert port == MarkedPort(
        *("port", "aa:bb:cc:00:00:01", UUID, "demo"),
        (
            MarkedAddress("10.9.0.5", "10.9.0.0/24", "10.9.0.1", ("10.9.0.53",)),
            MarkedAddress("fd00::5", "fd00::/64", None, ("fd00::1", "fd00::2")),
            MarkedAddress("10.8.0.7", "10.8.0.0/16"),
        ),
    )
    plain = Nic("port", "net", "vmbr0", "vmbr0", "aa:bb:cc:00:00:02")
    [port] = marks.ports_of({"description": marks.port_line(plain)}).values()
    assert port == MarkedPort("port", "aa:bb:cc:00:00:02")


@pytest.mark.parametrize(
    ("line", "addresses"),
    [
        ("port aa 10.0.0.5/x", (MarkedAddress("10.0.0.5"),)),
        (
            "port aa 10.0.0.5/99 gateway= dns=a,10.0.0.2",
            (MarkedAddress("10.0.0.5", dns=("10.0.0.2",)),),
        ),
        ("port aa 10.0.0.5/8 gateway=elsewhere", (MarkedAddress("10.0.0.5", "10.0.0.0/8"),)),
        ("port aa somewhere 10.0.0.300/24 /", ()),
        ("port aa gateway=10.0.0.1 dns=10.0.0.2", ()),
    ],
)
def test_an_edited_line_of_a_port_does_no_harm(
    line: str, addresses: tuple[MarkedAddress, ...]
) -> None:
    assert marks.ports_of({"description": f"{marks.PORT}{line}"})["aa"].addresses == addresses
    assert marks.ports_of({"description": marks.PORT}) == {}


@pytest.mark.parametrize(
    "network", [f"network={UUID}", "network=mine owner=demo", f"network={UUID} owner={'d' * 65}"]
)
def test_a_network_without_a_project_is_named_by_no_port(network: str) -> None:
    [port] = marks.ports_of({"description": f"{marks.PORT}port aa {network}"}).values()
    assert (port.network_id, port.network_owner) == ("", "")


def test_the_notes_of_a_backup_are_read_as_they_are_written() -> None:
    command = BackUpVolume(
        resource_type=ResourceType.VOLUME,
        resource_id=VOLUME,
        backup_id=UUID,
        project_id="demo",
        user_id="me",
        size_gib=3,
        cloud="blue",
        epoch=7,
    )
    notes = marks.backup_notes(command)
    assert "\n" not in notes
    assert marks.backup_of(notes) == marks.BackupMark(UUID, "blue", "demo", "me", VOLUME, 3, 7)
    bare = marks.backup_notes(BackUpVolume(backup_id=UUID))
    assert marks.backup_of(bare) == marks.BackupMark(UUID, "")
    edited = f"cloud=blue size=many volume=data project={'d' * 65} epoch={'9' * 40}"
    assert marks.backup_of(f"{marks.BACKUP}{UUID} {edited}") == marks.BackupMark(UUID, "blue")
    assert marks.backup_of("before the upgrade") is None
    assert marks.backup_of(marks.BACKUP) is None
