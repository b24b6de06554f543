"""The mark of an adopted VM, and what a close look says."""

from __future__ import annotations

from common.messages.facts import NicFacts
from common.resources.states import PowerState
from compute.hypervisor.proxmox.inspect.inspection import inspected
from compute.hypervisor.proxmox.vmconfig import marks
from compute.hypervisor.proxmox.vmconfig.marks import Owner

SERVER = "6b0f9c5e-55a5-4bb1-8f0c-9e2c3fbb0a01"
OTHER = "11111111-2222-4333-8444-555555555555"
MARK = marks.server_mark(SERVER, "")


def smbios(uuid: str) -> str:
    return f"base64=1,manufacturer=eA==,uuid={uuid}"


def test_an_adopted_vm_whose_uuid_is_the_servers_needs_one_line() -> None:
    config = {"description": "my notes\n", "smbios1": smbios(SERVER.upper())}
    marked = config | {"description": marks.with_mark(config, MARK)}
    assert marked["description"] == f"my notes\n{marks.SERVER}{SERVER}"
    assert marks.owner(marked, MARK) is Owner.OURS
    assert marks.without_mark(marked) == "my notes"


def test_another_uuid_is_written_down_and_a_copy_distinguished() -> None:
    config = {"smbios1": smbios(OTHER)}
    marked = config | {"description": marks.with_mark(config, MARK)}
    assert marks.owner(marked, MARK) is Owner.OURS
    assert marks.named(marked) == SERVER
    copy = marked | {"smbios1": smbios("99999999-2222-4333-8444-555555555555")}
    assert marks.owner(copy, MARK) is Owner.FOREIGN
    assert marks.without_mark(marked) == ""


def test_a_vm_without_uuid_is_ours_by_its_description_as_long_as_it_has_none() -> None:
    marked = {"description": marks.with_mark({}, MARK)}
    assert marks.owner(marked, MARK) is Owner.OURS
    assert marks.owner(marked | {"smbios1": smbios(OTHER)}, MARK) is Owner.FOREIGN


def test_a_built_vm_keeps_its_rule() -> None:
    built = {"description": MARK.description(), "smbios1": smbios(OTHER)}
    assert marks.owner(built, MARK) is Owner.FOREIGN
    assert marks.is_claimed(built)
    assert not marks.is_claimed({"description": "micronova: is nice"})


def test_what_a_configuration_says() -> None:
    config = {
        "name": "db",
        "cores": "2",
        "sockets": "2",
        "memory": "2048",
        "scsi0": "local:500/vm-500-disk-0.qcow2,size=10G",
        "virtio1": "local:500/vm-500-disk-1.raw,size=512M",
        "ide2": "local:iso/x.iso,media=cdrom,size=4G",
        "unused0": "local:500/vm-500-disk-2.raw,size=9G",
        "net10": "e1000=aa:bb:cc:dd:ee:02,bridge=vmbr1,tag=7",
        "net0": "virtio=AA:BB:CC:DD:EE:01,bridge=vmbr0,firewall=1",
        "ipconfig0": "ip=10.0.0.5/24,gw=10.0.0.1",
        "ipconfig10": "ip=dhcp",
        "smbios1": smbios(SERVER),
        "lock": "backup",
    }
    found = inspected(500, "pve1", config, PowerState.RUNNING, SERVER)
    assert (found.vcpus, found.memory_mib, found.disk_gib) == (4, 2048, 11)
    assert found.nics == (
        NicFacts("aa:bb:cc:dd:ee:01", "vmbr0", None, ("10.0.0.5",)),
        NicFacts("aa:bb:cc:dd:ee:02", "vmbr1", 7),
    )
    assert (found.kind, found.lock, found.smbios_uuid) == ("vm", "backup", SERVER)
    assert not found.ours
    assert found.marked_by is None
    assert inspected(5, "n", {"template": 1}, PowerState.NOSTATE, None).kind == "template"
