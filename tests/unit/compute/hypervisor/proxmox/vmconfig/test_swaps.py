"""What a VM had before its disks were swapped, and what it still lacks. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.guest.hardware import read
from compute.hypervisor.proxmox.vmconfig import swaps

OLD, NEW = "local:100/vm-100-disk-0.qcow2", "local:100/vm-100-disk-1.qcow2"
ISO, OTHER_ISO = "local:iso/micronova-100-u.iso", "local:iso/micronova-100-u-2.iso"
HAD: dict[str, Any] = {
    "description": "micronova: server=u\nmicronova: cloud=c",
    "scsi0": f"{OLD},size=2G",
    "ide2": f"{ISO},media=cdrom,size=4M",
    "boot": "order=scsi0;ide2",
    "name": "web",
    "net0": "virtio=FA:16:3E:00:00:01,bridge=vmbr0,queues=2",
    "unused3": "local:100/vm-100-disk-7.qcow2",
}
WANTED = {
    "scsi0": "local:0,import-from=shared:import/i.qcow2",
    "ide2": f"{OTHER_ISO},media=cdrom",
    "name": "new",
}
NOTE = swaps.note(7, HAD, {**WANTED, "boot": None, "watchdog": None})


def test_a_note_is_read_as_it_was_written() -> None:
    config = HAD | {"description": swaps.with_note(HAD, NOTE)}
    assert swaps.note_of(config) == NOTE
    assert NOTE.before["watchdog"] is None
    assert NOTE.replaced == {OLD}
    assert NOTE.config_drive == ISO
    assert swaps.without_note(config) == HAD["description"]
    again = HAD | {"description": swaps.with_note(config, NOTE)}
    assert again["description"].count("before=") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"operation":1}', '{"operation":null}'])
def test_what_is_no_note(text: str) -> None:
    assert swaps.note_of({"description": f"micronova: before={text}"}) is None


def test_only_what_is_missing_is_asked_for() -> None:
    assert swaps.missing(HAD, NOTE, WANTED) == WANTED
    half = HAD | {"scsi0": f"{NEW},size=1G", "unused0": OLD}
    assert swaps.missing(half, NOTE, WANTED) == {"ide2": WANTED["ide2"], "name": "new"}
    all_of_it = half | {"ide2": f"{OTHER_ISO},media=cdrom,size=4M", "name": "new"}
    assert swaps.missing(all_of_it, NOTE, WANTED) == {}
    assert swaps.missing(all_of_it | {"ostype": "l26"}, NOTE, {"ostype": None}) == {
        "delete": "ostype"
    }


@pytest.mark.parametrize("size", ["1", "0.5", "0.0009765625"])
def test_a_new_disk_may_have_any_size(size: str) -> None:
    had = HAD | {"scsi30": f"{OLD},serial=swap,size=512M"}
    wanted = {"scsi30": f"local:{size},serial=swap"}
    noted = swaps.note(7, had, wanted)
    assert swaps.missing(had, noted, wanted) == wanted
    assert swaps.missing(had | {"scsi30": f"{NEW},serial=swap"}, noted, wanted) == {}


def test_what_it_gets_back() -> None:
    now = HAD | {
        "scsi0": f"{NEW},size=1G",
        "unused0": OLD,
        "name": "new",
        "watchdog": "model=i6300esb",
        "boot": "order=scsi0",
    }
    back = {"scsi0": HAD["scsi0"], "name": "web", "delete": "watchdog"}
    assert swaps.given_back(now, NOTE) == back
    assert swaps.given_back(HAD, NOTE) == {}
    boot = "order=scsi0;ide0;ide2"
    assert swaps.given_back(HAD | {"boot": "order=sata5;ide2"}, NOTE) == {"boot": HAD["boot"]}
    of_cd = dataclasses.replace(NOTE, before={**NOTE.before, "boot": boot})
    assert swaps.given_back(HAD, of_cd) == {"boot": boot}
    assert swaps.given_back(HAD | {"boot": "order=scsi0;ide2;ide0"}, of_cd) == {}


def test_a_disk_that_is_no_cd() -> None:
    config = {"ide0": "s:iso/a.iso,media=cdrom", "scsi1": "l:1/vm-1-disk-1.raw"}
    assert swaps.is_disk_there(config, "scsi1")
    assert not swaps.is_disk_there(config, "ide0")
    assert not swaps.is_disk_there(config, "ide1")


def test_disks_that_go() -> None:
    now = HAD | {"scsi0": f"{NEW},size=1G", "unused0": OLD}
    assert swaps.surplus(now, NOTE.replaced) == ["unused0"]
    back = HAD | {"unused0": NEW}
    assert swaps.made_since(back, NOTE) == {NEW}
    assert swaps.surplus(back, swaps.made_since(back, NOTE)) == ["unused0"]


def test_hardware_that_both_images_decide_alike_stays() -> None:
    linux = read(2, 512, {}, {})
    windows = read(2, 512, {}, {"os_type": "windows", "hw_vif_model": "e1000"})
    assert swaps.hardware(HAD, linux, linux, 2, "host") == {}
    assert swaps.hardware(HAD, windows, linux, 2, "host") == {
        "ostype": "win11",
        "net0": "e1000=FA:16:3E:00:00:01,bridge=vmbr0",
    }
    assert swaps.hardware(HAD, linux, read(2, 512, {}, {"hw_machine_type": "q35"}), 2, "host") == {
        "machine": None
    }


def test_what_it_boots_from() -> None:
    assert swaps.rescued_from({"boot": "order=scsi15;ide2"}) == "scsi15"
    assert swaps.rescued_from({"boot": "order=sata5;scsi15"}) == "sata5"
    assert swaps.rescued_from({"boot": "order=scsi0;scsi15"}) is None
    assert swaps.rescued_from({}) is None
