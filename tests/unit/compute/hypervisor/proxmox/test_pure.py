"""The driver's pure parts: ownership, disks, hardware, task ids, privileges, images, settings."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from common import config, ids
from common.errors import ConfigurationError
from common.messages.commands import Image, Nic, Template
from compute import config as compute_config
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.tasks import is_running
from compute.hypervisor.proxmox.api.upid import parse
from compute.hypervisor.proxmox.cluster.storage_queue import StorageQueue
from compute.hypervisor.proxmox.observe import images, pins
from compute.hypervisor.proxmox.observe.snapshot import Node, Storage, chosen
from compute.hypervisor.proxmox.settings import Token
from compute.hypervisor.proxmox.vmconfig import disks, hardware
from compute.hypervisor.proxmox.vmconfig.disks import Way
from compute.hypervisor.proxmox.vmconfig.marks import (
    BUILDING,
    Owner,
    owner,
    server_mark,
    stranger,
    template_mark,
)
from tests.unit.compute.fakes import SERVER, FakeWork, a_build

OTHER = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("vm", "whose"),
    [
        ({"description": f"micronova: server={SERVER}\n", "smbios1": f"uuid={SERVER}"}, "OURS"),
        ({"description": f"micronova: server={SERVER}", "smbios1": f"uuid={OTHER}"}, "FOREIGN"),
        ({"description": f"micronova: server={SERVER}"}, "FOREIGN"),
        ({"description": f"micronova: server={SERVER}\n{BUILDING}", "smbios1": "x"}, "OURS"),
        ({"description": f"micronova: server={OTHER}", "smbios1": f"uuid={SERVER}"}, "FOREIGN"),
        ({"smbios1": f"uuid={SERVER}"}, "FOREIGN"),
        ({"lock": "create"}, "UNMARKED"),
        ({"lock": "clone"}, "UNMARKED"),
        ({"lock": "backup"}, "FOREIGN"),
        ({}, "FOREIGN"),
    ],
)
def test_whose_a_vm_is(vm: dict[str, Any], whose: str) -> None:
    assert owner(vm, server_mark(SERVER, "")) is Owner[whose]


def test_a_template_is_known_by_its_image() -> None:
    mark = template_mark("image1", "cloud1")
    assert owner({"description": mark.description("more")}, mark) is Owner.OURS
    for other in (template_mark("image2", "cloud1"), template_mark("image1", "cloud2")):
        assert owner({"description": mark.description()}, other) is Owner.FOREIGN


def test_another_clouds_vm_says_whose_it_is() -> None:
    text = f"micronova: server={SERVER}\nmicronova: cloud=east"
    assert stranger({"description": text}) == f"it is server {SERVER} of cloud east"
    assert stranger({"description": "a web server"}) is None


def test_the_way_to_a_disk() -> None:
    template = Template(190_001, "pve1", "local")

    def way(storage: str, kind: str, linked: bool = True, **build: Any) -> Way:
        return disks.way(a_build(**build), storage, kind, linked=linked)

    assert way("local", "dir") is Way.IMPORT_FROM
    assert way("local", "dir", template=template) is Way.LINKED_CLONE
    assert way("local", "dir", linked=False, template=template) is Way.FULL_CLONE
    assert way("other", "dir", template=template) is Way.FULL_CLONE
    assert way("local", "lvm", template=template) is Way.IMPORT_FROM


@pytest.mark.parametrize(
    ("option", "shared", "local"),
    [("shared", True, False), ("always", True, True), ("never", False, False)],
)
def test_where_disks_are_linked_clones(option: str, shared: bool, local: bool) -> None:
    assert disks.links(option, shared=True) is shared
    assert disks.links(option, shared=False) is local


def test_shared_storage_comes_before_larger_local_one() -> None:
    local = Storage("local", "dir", False, True, 2 << 40, 0, frozenset({"images", "iso"}))
    nfs = Storage("nfs", "nfs", True, True, 1 << 40, 0, frozenset({"images"}))
    node = Node("pve1", online=True, storages={"local": local, "nfs": nfs})
    assert chosen(node, None, "images") is nfs
    assert chosen(node, None, "iso") is local
    assert chosen(node, "local", "images") is local


def test_what_keeps_a_vm_where_it_is() -> None:
    server = "0b3f5a52-9e5f-4c11-9d61-d2a3c8f6a0de"
    listed = [
        {"volid": "local:101/base-101-disk-0.qcow2", "content": "images", "vmid": 101},
        {
            "volid": "local:101/base-101-disk-0.qcow2/102/vm-102-disk-0.qcow2",
            "content": "images",
            "vmid": 102,
        },
        {"volid": "tank:base-101-disk-0/vm-103-disk-0", "content": "images", "vmid": "103"},
        {"volid": "local:104/vm-104-disk-0.qcow2", "content": "images", "vmid": 104},
        {"volid": f"local:iso/micronova-105-{server}.iso", "content": "iso"},
        {"volid": "local:iso/rescue.iso", "content": "iso"},
    ]
    found = pins.of_storage("local", listed)
    assert set(found) == {102, 103, 105}
    assert found[102] == "its disk is a linked clone on the node's own storage local"
    assert found[105] == "its config drive is on the node's own storage local"


def test_disk_values() -> None:
    volid = "s:import/a.qcow2"
    assert disks.imported("l", "dir", volid) == f"l:0,import-from={volid},format=qcow2"
    assert disks.imported("l", "lvmthin", volid) == f"l:0,import-from={volid}"
    assert disks.size_bytes("local:1/vm-1-disk-0.qcow2,size=3584M") == 3584 << 20
    assert disks.size_bytes("local:1/vm-1-disk-0.qcow2") == 0


def test_volumes_of_a_vm_are_those_with_its_id() -> None:
    vm = {
        "scsi0": "local:190001/base-190001-disk-0.qcow2/100001/vm-100001-disk-0.qcow2,size=1G",
        "unused0": "lvm:vm-100001-disk-1",
        "scsi1": "lvm:vm-1000010-disk-1,size=1G",
        "ide2": "local:iso/micronova-100001-x.iso,media=cdrom",
        "net0": "virtio=AA",
    }
    assert disks.volumes(vm, 100_001) == {
        "local:190001/base-190001-disk-0.qcow2/100001/vm-100001-disk-0.qcow2",
        "lvm:vm-100001-disk-1",
    }


def test_hardware_of_a_server() -> None:
    nic = Nic("p", "n", "net", "vmbr1", "fa:16:3e:aa:bb:cc", 1450, 7)
    build = a_build(nics=(nic,), tags=("Blue Team", "x"), hostname="My_Server.example")
    found = hardware.parameters(build, server_mark(SERVER, ""), "host", "l:iso/a.iso")
    assert found["net0"] == "virtio=FA:16:3E:AA:BB:CC,bridge=vmbr1,mtu=1450,tag=7"
    assert found["smbios1"] == f"uuid={SERVER}"
    assert found["tags"] == "micronova;blue-team;x"
    assert found["name"] == "my-server.example"
    assert found["ide2"] == "l:iso/a.iso,media=cdrom"
    assert owner(found, server_mark(SERVER, "")) is Owner.OURS
    assert "ide2" not in hardware.parameters(build, server_mark(SERVER, ""), "host", None)


@pytest.mark.parametrize(
    ("hostname", "name"),
    [("", "web"), ("---", "vm-100001"), ("a" * 80, "a" * 63), ("größe", "gr-e"), ("a..b", "a.b")],
)
def test_names_are_dns_names(hostname: str, name: str) -> None:
    assert hardware.vm_name(a_build(hostname=hostname)) == name


def test_templates_are_found_by_name() -> None:
    assert hardware.image_of_template(hardware.template_name("i1")) == "i1"
    assert hardware.image_of_template("web") is None


def test_task_ids() -> None:
    upid = parse("UPID:pve1:000005F5:00060595:6B003D23:qmstart:100:root@pam!x:")
    assert upid is not None
    assert (upid.node, upid.kind, upid.subject, upid.who) == (
        "pve1",
        "qmstart",
        "100",
        "root@pam!x",
    )
    assert parse("UPID:pve1:000005F5:00060595:6B003D23:imgcopy::root@pam:") is not None
    assert parse("nonsense") is None


def test_the_active_list_also_holds_ended_tasks() -> None:
    assert is_running({"status": "RUNNING"})
    assert is_running({})
    assert not is_running({"status": "OK", "endtime": 1})
    assert not is_running({"status": "OK"})


TOKEN = Token("micronova@pve", "agent", "s3cret")


def test_what_a_token_lacks_comes_with_the_commands() -> None:
    needed = privileges.needs(["local"], ["local"], ["nfs"])
    everything = {need.path: dict.fromkeys(need.privileges, 1) for need in needed}
    merged = {"/storage/local": {**everything["/storage/local"]}}
    for need in needed:
        merged.setdefault(need.path, {}).update(dict.fromkeys(need.privileges, 1))
    assert privileges.lacking(merged, needed) == []
    del merged["/vms"]["VM.Clone"]
    del merged["/sdn/zones/localnetwork"]
    missing = privileges.lacking(merged, needed)
    assert privileges.sentence(missing) == "/vms: VM.Clone; /sdn/zones/localnetwork: SDN.Use"
    lines = privileges.grant_lines(missing, TOKEN)
    assert "pveum role add Micronova --privs 'SDN.Use,VM.Clone'" in lines[0]
    assert "pveum role modify Micronova --append 1 --privs 'SDN.Use,VM.Clone'" in lines[0]
    assert "pveum acl modify /vms --tokens 'micronova@pve!agent' --roles Micronova" in lines
    assert not any(
        "s3cret" in line
        for line in (*privileges.token_lines(TOKEN), *privileges.all_grant_lines(TOKEN))
    )


def test_a_privilege_counts_where_it_propagates() -> None:
    needed = privileges.needs(["local"], [], [])[-1:]
    have = dict.fromkeys(needed[0].privileges, 1)
    assert privileges.lacking({"/storage": have}, needed) == []
    assert privileges.lacking({"/storage": dict.fromkeys(have, 0)}, needed) == needed


def test_a_cd_beside_a_blank_disk() -> None:
    cd = Image("i", "a.iso", "s:iso/a.iso", cd=True)
    build = a_build(image=cd)
    assert disks.way(build, "l", "dir", linked=True) is Way.BLANK
    found = hardware.parameters(build, server_mark(SERVER, ""), "host", "l:iso/drive.iso")
    assert (found["boot"], found["ide0"]) == ("order=scsi0;ide0", "s:iso/a.iso,media=cdrom")
    assert found["ide2"] == "l:iso/drive.iso,media=cdrom"
    assert disks.made_of(cd, "l", "dir", 20) == "l:20,format=qcow2"
    assert disks.made_of(cd, "l", "lvmthin", 20) == "l:20"


def test_images_are_named_by_their_files() -> None:
    drive = hardware.config_drive_names(100_001, ids.new_uuid())[0]
    listed = [
        {"content": "import", "format": "qcow2", "volid": "s:import/deb-12.qcow2", "size": 5},
        {"content": "import", "format": "ova+vmdk", "volid": "s:import/a.ova", "size": 5},
        {"content": "iso", "format": "iso", "volid": "s:iso/deb-12.iso", "size": 5},
        {"content": "iso", "format": "iso", "volid": "s:iso/stick.img", "size": 5},
        {"content": "iso", "format": "iso", "volid": f"s:iso/{drive}", "size": 5},
    ]
    found = images.facts("s", listed)
    assert [(one.name, one.disk_format) for one in found] == [
        ("deb-12", "qcow2"),
        ("deb-12.iso", "iso"),
    ]
    assert [one.id for one in found] == [ids.named("image", one.name) for one in found]


def conf_of(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "c.conf"
    path.write_text(text)
    return config.load([compute_config.register], files=[str(path)])


def a_token(tmp_path: Path, text: str = "a@pve!bb=secret", mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_settings_of_a_cluster(tmp_path: Path) -> None:
    token = a_token(tmp_path)
    text = f"""[proxmox]
clusters = a
[proxmox:a]
endpoints = https://pve1:8007, pve2
token_file = {token}
hosts = n1
"""
    [found] = settings.clusters(conf_of(tmp_path, text))
    assert found.endpoints == (("pve1", 8007), ("pve2", 8006))
    assert found.token.id == "a@pve!bb"
    assert "secret" not in repr(found)
    assert found.verify is True
    assert found.hosts == {"n1"}


@pytest.mark.parametrize(
    ("lines", "mode", "words"),
    [
        ("", 0o600, "names no cluster"),
        ("[proxmox:a]\ntoken_file = {token}", 0o600, "endpoints is empty"),
        ("[proxmox:a]\nendpoints = http://x\ntoken_file = {token}", 0o600, "no https URL"),
        ("[proxmox:a]\nendpoints = x", 0o600, "token_file is not set"),
        ("[proxmox:a]\nendpoints = x\ntoken_file = {token}", 0o644, "chmod 600"),
        ("[proxmox:a]\nendpoints = x\ntoken_file = /nowhere", 0o600, "can't be read"),
        (
            "[proxmox:a]\nendpoints = x\ntoken_file = {token}\nca_file = /nowhere",
            0o600,
            "is no file",
        ),
        (
            "[proxmox:a]\nendpoints = x\ntoken_file = {token}\nvmid_low = 300000",
            0o600,
            "above vmid_high",
        ),
    ],
)
def test_settings_that_are_wrong_say_so(tmp_path: Path, lines: str, mode: int, words: str) -> None:
    token = a_token(tmp_path, mode=mode)
    named = "clusters = a" if lines else ""
    text = f"[proxmox]\n{named}\n{lines.format(token=token)}\n"
    with pytest.raises(ConfigurationError, match=words) as caught:
        settings.clusters(conf_of(tmp_path, text))
    assert "\n" not in caught.value.message
    assert "secret" not in caught.value.message


def test_a_storage_admits_so_many_in_order() -> None:
    queue = StorageQueue(local_slots=1, shared_slots=2)
    order: list[int] = []
    first_in, go = threading.Event(), threading.Event()

    def use(number: int) -> None:
        with queue.slot(FakeWork(), ("pve1", "local")):
            order.append(number)
            first_in.set()
            assert go.wait(60)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
    threads[0].start()
    assert first_in.wait(60)
    for thread in threads[1:]:
        thread.start()
    assert order == [0]
    with queue.slot(FakeWork(), ("pve2", "local")), queue.slot(FakeWork(), (None, "nfs")):
        go.set()
    for thread in threads:
        thread.join(60)
    assert sorted(order) == [0, 1, 2]


def test_who_gives_up_waiting_takes_no_slot() -> None:
    class Impatient(FakeWork):
        def check(self) -> None:
            raise TimeoutError

    queue = StorageQueue(local_slots=1, shared_slots=1)
    with queue.slot(FakeWork(), ("pve1", "local")):
        with pytest.raises(TimeoutError), queue.slot(Impatient(), ("pve1", "local")):
            pytest.fail("the slot was taken")
    with queue.slot(FakeWork(), ("pve1", "local")):
        pass
