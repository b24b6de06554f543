"""Volumes, who names them, their snapshots and sizes: each difference, and where there is none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.messages.inventory import (
    ClusterInventory,
    SeenReference,
    SeenSnapshot,
    SeenVm,
    SeenVolume,
)
from conductor.audit.auditor import _looked_at
from conductor.audit.differences import differences
from conductor.audit.facts import AttachmentFacts, Facts, Finding, SnapshotFacts, VolumeFacts
from conductor.audit.kinds import BY_CONFIG, ELSEWHERE, KINDS, Verb
from conductor.store.audits.findings import Kept
from tests.unit.conductor.audit.test_differences import WEB, a_vm, facts, reserved

HOLDER = 100_009
VOLID = f"rbd:vm-{HOLDER}-disk-0"
VOLUME = VolumeFacts("data", "in-use", "c1", "pve1", HOLDER, VOLID, 1, "rbd", shared=True)
ATTACHED = AttachmentFacts("data", WEB, "attached", 1)
NAMED = SeenReference(100_001, "pve1", "scsi1", VOLID)
DISK = SeenVolume(VOLID, "rbd", "pve1", HOLDER, True, 1 << 30)
SNAPPED = SnapshotFacts("shot", "data", "available", "s1")


def a_holder(**changes: Any) -> SeenVm:
    """The holder of the volume, which rests in it."""
    values: dict[str, Any] = {"volume_id": "data", "parked": True, "status": "stopped"}
    values |= {"cloud": "", "proven": True, "snapshots": (), "references": ()}
    return a_vm(HOLDER, None, **(values | changes))


def web(**changes: Any) -> SeenVm:
    """The VM of the server, which names the volume."""
    return a_vm(**({"references": (NAMED,), "snapshots": ()} | changes))


def given(
    *vms: SeenVm, disk: SeenVolume = DISK, inventory: dict[str, Any] | None = None, **changes: Any
) -> Facts:
    """A server that has a volume, both as they are to be, unless something is changed."""
    seen = ClusterInventory("c1", vms or (web(), a_holder()), (disk,), **(inventory or {}))
    base = facts()
    values: dict[str, Any] = {
        "inventories": {"c1": seen},
        "volumes": (VOLUME,),
        "attachments": (ATTACHED,),
        "reservations": {**base.reservations, ("c1", HOLDER): reserved(HOLDER, None)},
    }
    return dataclasses.replace(base, **(values | changes))


def only(of: Facts) -> Finding:
    """The one difference; it has a sentence and a remedy for the operator."""
    (found,) = differences(of)
    assert found.kind in KINDS
    assert found.cause.endswith(".")
    assert KINDS[found.kind].remedy
    return found


def test_what_agrees_is_no_difference() -> None:
    assert differences(given()) == []


# --- references


def test_an_attached_volume_that_the_vm_does_not_name() -> None:
    found = only(given(web(references=()), a_holder()))
    assert (found.kind, found.subject, found.server_uuid) == ("volume_not_referenced", "data", WEB)
    assert (found.vmid, found.evidence["slot"]) == (100_001, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"busy": frozenset({WEB})},
        {"busy_volumes": frozenset({"data"})},
        {"attachments": (dataclasses.replace(ATTACHED, status="detaching"),)},
        {"attachments": (dataclasses.replace(ATTACHED, server_uuid="another"),)},
        {"volumes": (dataclasses.replace(VOLUME, cluster="c2"),)},
        {"attachments": (dataclasses.replace(ATTACHED, volume_id="another"),)},
    ],
)
def test_nothing_is_missing_where_something_may_change_it(changes: dict[str, Any]) -> None:
    kinds = {one.kind for one in differences(given(web(references=()), a_holder(), **changes))}
    assert "volume_not_referenced" not in kinds


def test_a_vm_that_was_not_read_lacks_nothing() -> None:
    assert differences(given(web(references=None), a_holder())) == []
    assert differences(given(web(read=False, references=None), a_holder())) == []


def test_a_reference_of_a_vm_whose_server_does_not_have_the_volume() -> None:
    found = only(given(attachments=(), volumes=(dataclasses.replace(VOLUME, status="available"),)))
    assert (found.kind, found.subject) == (ELSEWHERE, "c1/100001/data")
    assert "no server uses it" in found.cause
    assert KINDS[ELSEWHERE].verb is Verb.REPORT


def test_a_reference_of_another_vm_than_the_servers() -> None:
    other = a_vm(300_001, None, references=(dataclasses.replace(NAMED, vmid=300_001),))
    bands = {"c1": (100_000, 199_999)}
    kinds = {one.kind: one for one in differences(given(web(), a_holder(), other, bands=bands))}
    assert f"server {WEB} uses it" in kinds[ELSEWHERE].cause
    assert kinds[ELSEWHERE].vmid == 300_001


def test_a_reference_of_a_vm_of_others() -> None:
    theirs = dataclasses.replace(NAMED, vmid=200, node="pve2", option="sata0")
    seen = {"other_references": (theirs,), "other_tags_complete": True}
    found = only(given(inventory=seen))
    assert (found.kind, found.vmid, found.node) == (ELSEWHERE, 200, "pve2")
    assert found.evidence["option"] == "sata0"


def test_a_reference_to_what_is_no_volume_of_the_record_is_no_difference() -> None:
    stray = dataclasses.replace(NAMED, volid="rbd:vm-100077-disk-0")
    assert differences(given(web(references=(NAMED, stray)), a_holder())) == []


def test_a_volume_that_is_worked_on_may_be_named_by_anybody() -> None:
    assert differences(given(attachments=(), busy_volumes=frozenset({"data"}))) == []


def test_a_server_that_is_worked_on_may_have_its_volume_elsewhere() -> None:
    theirs = dataclasses.replace(NAMED, vmid=200)
    seen = {"other_references": (theirs,)}
    assert differences(given(inventory=seen, busy=frozenset({WEB}))) == []


# --- nodes


def test_a_volume_on_another_node_than_its_server() -> None:
    local = dataclasses.replace(VOLUME, shared=False, node="pve2")
    found = only(given(volumes=(local,)))
    assert (found.kind, found.server_uuid) == ("volume_out_of_reach", WEB)
    assert "which only pve2 has" in found.cause
    for changes in (
        {"busy": frozenset({WEB})},
        {"busy_volumes": frozenset({"data"})},
        {"volumes": (dataclasses.replace(local, node="pve1"),)},
        {"attachments": (dataclasses.replace(ATTACHED, status="attaching"),)},
    ):
        assert differences(given(**({"volumes": (local,)} | changes))) == []
    unlisted = given(a_holder(), volumes=(local,))
    assert "volume_out_of_reach" not in {one.kind for one in differences(unlisted)}


# --- snapshots of VMs


def test_a_volume_in_a_snapshot_of_a_servers_vm() -> None:
    shot = SeenSnapshot("before-upgrade", volumes=(VOLID,))
    found = only(given(web(snapshots=(SeenSnapshot("other"), shot)), a_holder()))
    assert (found.kind, found.subject) == ("volume_in_vm_snapshot", "c1/100001/before-upgrade")
    busy = given(web(snapshots=(shot,)), a_holder(), busy_volumes=frozenset({"data"}))
    assert differences(busy) == []
    assert differences(given(web(snapshots=(shot,)), a_holder(), busy=frozenset({WEB}))) == []


# --- snapshots of volumes


def test_a_snapshot_in_a_holder_that_no_record_names() -> None:
    vms = web(), a_holder(snapshots=(SeenSnapshot("s1"), SeenSnapshot("mine")))
    found = only(given(*vms, snapshots=(SNAPPED,)))
    assert (found.kind, found.subject) == ("snapshot_without_record", f"c1/{HOLDER}/mine")
    assert found.evidence["snapshot"] == "mine"


@pytest.mark.parametrize("there", [(), (SeenSnapshot("s1", whole=False),)])
def test_a_snapshot_that_its_holder_has_not(there: tuple[SeenSnapshot, ...]) -> None:
    found = only(given(web(), a_holder(snapshots=there), snapshots=(SNAPPED,)))
    assert (found.kind, found.subject) == ("snapshot_missing", "shot")


@pytest.mark.parametrize(
    ("holder", "record"),
    [
        ({}, {"status": "error"}),
        ({}, {"snapname": None}),
        ({"snapshots": None}, {}),
        ({"lock": "snapshot", "lock_live": True}, {}),
    ],
)
def test_what_is_no_snapshots_difference(holder: dict[str, Any], record: dict[str, Any]) -> None:
    one = dataclasses.replace(SNAPPED, **record)
    assert differences(given(web(), a_holder(**holder), snapshots=(one,))) == []


# --- sizes


def test_a_volume_of_another_size() -> None:
    larger = dataclasses.replace(DISK, size_bytes=2 << 30)
    found = only(given(disk=larger))
    assert (found.kind, found.subject) == ("volume_size_differs", "data")
    assert str(2 << 30) in found.cause
    in_error = (dataclasses.replace(VOLUME, status="error"),)
    assert differences(given(disk=larger, volumes=in_error)) == []
    assert differences(given(disk=larger, busy_volumes=frozenset({"data"}))) == []
    unknown = dataclasses.replace(DISK, size_bytes=0)
    assert differences(given(disk=unknown)) == []


# --- holders


@pytest.mark.parametrize("proven", [True, False])
def test_a_holder_that_is_not_parked_is_parked_if_it_is_proven(proven: bool) -> None:
    found = only(given(web(), a_holder(parked=False, proven=proven)))
    assert (found.kind, found.proven) == ("holder_not_parked", proven)
    assert KINDS["holder_not_parked"].verb is Verb.PARK


def test_a_holder_whose_description_was_edited() -> None:
    found = only(given(web(), a_holder(volume_id="another", proven=False)))
    assert (found.kind, found.vmid) == ("holder_replaced", HOLDER)


def test_a_holder_that_was_deleted() -> None:
    found = only(given(web()))
    assert (found.kind, found.subject) == ("volume_missing", "data")


# --- what a look has shown


def kept(finding: Finding) -> Kept:
    names = {one.name for one in dataclasses.fields(Kept)}
    values = {name: getattr(finding, name, None) for name in names}
    return Kept(**{**values, "id": 1})


def test_what_only_configurations_show_stays_until_they_are_read_again() -> None:
    found = only(given(web(references=()), a_holder()))
    assert found.kind in BY_CONFIG
    assert not _looked_at(given(web(read=False, references=None), a_holder()), kept(found))
    assert _looked_at(given(), kept(found))


def test_what_a_vm_of_others_names_stays_until_all_of_them_were_read() -> None:
    theirs = dataclasses.replace(NAMED, vmid=200)
    found = only(given(inventory={"other_references": (theirs,)}))
    for complete in (False, True):
        seen = {"other_references": (), "other_tags_complete": complete}
        assert _looked_at(given(inventory=seen), kept(found)) is complete
    assert not _looked_at(given(inventory={"other_tags_complete": True}), kept(found))
