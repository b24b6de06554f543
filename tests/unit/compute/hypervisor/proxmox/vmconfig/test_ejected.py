"""CDs that were ejected for a move, and their note in the VM's description."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compute.hypervisor.proxmox.vmconfig import ejected

VOLID = "local:iso/install.iso"
VALUE = f"{VOLID},media=cdrom,size=4M"
BEFORE = {
    "description": "micronova: server=1\nof somebody",
    "ide0": VALUE,
    "ide2": "local:iso/other.iso,media=cdrom",
    "scsi0": "local:100/vm-100-disk-0.qcow2",
}


def test_what_is_taken_out_is_noted_and_put_in_again() -> None:
    between = BEFORE | ejected.taken_out(BEFORE, {VOLID})
    assert (between["ide0"], between["ide2"]) == (ejected.EMPTY, BEFORE["ide2"])
    assert ejected.noted(between) == {"ide0": VALUE}
    assert ejected.taken_out(between, {VOLID}) == {}
    after = between | ejected.put_in(between, ejected.noted(between))
    assert after == BEFORE
    assert ejected.put_in(after, {"ide0": VALUE}) == {}


def test_a_drive_with_another_cd_keeps_it_and_the_note_goes() -> None:
    between = BEFORE | ejected.taken_out(BEFORE, {VOLID}) | {"ide0": BEFORE["ide2"]}
    assert ejected.put_in(between, {"ide0": VALUE}) == {"description": BEFORE["description"]}


@pytest.mark.parametrize(
    "note",
    ["{", "[]", "7", {"scsi1": "local:100/vm-100-disk-9.qcow2"}, {"ide0": ejected.EMPTY}],
)
def test_what_is_no_note_of_cds_inserts_nothing(note: Any) -> None:
    text = note if isinstance(note, str) else json.dumps(note)
    assert ejected.noted({"description": f"micronova: ejected={text}"}) == {}


@pytest.mark.parametrize(
    ("disk", "is_cd"),
    [({"cdrom": 1}, True), ({"cdrom": 1, "is_cloudinit": 1}, False), ({"cdrom": 0}, False)],
)
def test_cds_among_local_disks(disk: dict[str, int], is_cd: bool) -> None:
    assert ejected.is_cd(disk) is is_cd
