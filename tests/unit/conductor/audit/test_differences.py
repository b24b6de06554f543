"""Every kind of difference, and every circumstance in which there is none."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.messages.inventory import (
    ClusterInventory,
    SeenDrive,
    SeenReplica,
    SeenVm,
    SeenVolume,
)
from conductor.audit import losses
from conductor.audit.auditor import filled
from conductor.audit.came_back import LATE
from conductor.audit.differences import differences
from conductor.audit.facts import (
    Facts,
    Finding,
    GroupPlace,
    HolderFacts,
    HostFact,
    OpenOperation,
    PortFacts,
    Reservation,
    ServerFacts,
    TemplateFacts,
)
from conductor.audit.gather import due
from conductor.audit.kinds import BY_CONFIG, BY_FIREWALL, KINDS, LEFT_BEHIND, Verb
from conductor.audit.records import OVERDUE

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
WEB, GONE, STRANGER, OTHER = "web", "gone", "stranger", "other"
PLACE = ("c1", 100_001)
RESOURCES = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10}
HOSTS = {"pve1": "rp1", "pve2": "rp2"}


def a_server(uuid: str = WEB, **changes: Any) -> ServerFacts:
    values: dict[str, Any] = {
        "project_id": "p",
        "user_id": "u",
        "vm_state": "active",
        "task_state": None,
        "operation_id": 1,
        "host": "pve1",
        "node": "pve1",
        "cluster": "c1",
        "vmid": 100_001,
        "vcpus": 2,
        "memory_mib": 512,
        "disk_gib": 10,
        "held": False,
        "addresses": ("10.0.0.5",),
        "deleted_at": None,
    }
    return ServerFacts(uuid, **(values | changes))


def a_deleted(uuid: str = GONE) -> ServerFacts:
    return a_server(uuid, vm_state="deleted", addresses=(), deleted_at=NOW)


def a_vm(vmid: int = 100_001, server: str | None = WEB, **changes: Any) -> SeenVm:
    values: dict[str, Any] = {
        "name": "web",
        "status": "running",
        "vcpus": 2,
        "memory_mib": 512,
        "read": True,
        "server_uuid": server,
        "proven": server is not None,
    }
    return SeenVm(vmid, changes.pop("node", "pve1"), **(values | changes))


def a_volume(vmid: int, **changes: Any) -> SeenVolume:
    return SeenVolume(f"local:{vmid}/vm-{vmid}-disk-0.qcow2", "local", "pve1", vmid, **changes)


def a_drive(vmid: int, server: str) -> SeenVolume:
    name = f"local:iso/micronova-{vmid}-{server}.iso"
    return SeenVolume(name, "local", "pve1", vmid, server_uuid=server)


def reserved(vmid: int = 100_001, server: str | None = WEB, **changes: Any) -> Reservation:
    values = {"state": "reserved", "reason": None, "since": NOW} | changes
    return Reservation("c1", vmid, server_uuid=server, **values)


def facts(*vms: SeenVm, volumes: tuple[SeenVolume, ...] = (), **changes: Any) -> Facts:
    """One server, all of whose parts agree, unless something is changed."""
    values: dict[str, Any] = {
        "servers": {WEB: a_server()},
        "reservations": {PLACE: reserved()},
        "ports": (PortFacts("port", WEB, "10.0.0.5"),),
        "hosts": {"pve1": HostFact("pve1", "rp1", "c1", "pve1")},
        "inventories": {"c1": ClusterInventory("c1", vms or (a_vm(),), volumes)},
        "allocations": {WEB: {"rp1": RESOURCES}},
    }
    return Facts(NOW, **(values | changes))


def found(given: Facts) -> dict[str, Finding]:
    """By kind; there is one of each."""
    listed = differences(given)
    by_kind = {one.kind: one for one in listed}
    assert len(by_kind) == len(listed), listed
    assert set(by_kind) <= set(KINDS)
    return by_kind


def with_servers(*more: ServerFacts) -> dict[str, ServerFacts]:
    return {WEB: a_server()} | {one.uuid: one for one in more}


def journal(vmid: int, *servers: str) -> Any:
    return {("c1", vmid): frozenset(servers)}


def test_what_agrees_is_no_difference() -> None:
    assert differences(facts()) == []
    assert differences(Facts(NOW)) == []


def test_what_could_not_be_looked_at_is_no_difference() -> None:
    assert differences(facts(inventories={}, allocations=None)) == []


# --- VMs

BANDS = {"c1": (100_000, 199_999)}


def test_another_clouds_vms_in_its_own_band_are_no_difference() -> None:
    theirs = a_vm(300_001, STRANGER, lock="clone", cloud="south")
    template = a_vm(300_002, None, image_id="image", proven=True, cloud="south")
    holder = a_vm(300_003, None, volume_id="data", proven=True, cloud="south")
    ours = a_vm(cloud="north")
    assert found(facts(ours, theirs, template, holder, bands=BANDS, cloud="north")) == {}
    # Out of our band, but ours: a copy by hand says that it is a server of ours.
    copy = a_vm(300_001, GONE, proven=False)
    given = facts(a_vm(), copy, bands=BANDS, servers=with_servers(a_deleted()))
    assert set(found(given)) == {"vm_foreign"}


def test_another_cloud_in_our_band_is_reported_as_an_overlap() -> None:
    template = a_vm(100_002, None, image_id="image", proven=True, cloud="south")
    server = a_vm(100_003, STRANGER, cloud="south")
    holder = a_vm(100_004, None, volume_id="data", proven=True, cloud="south")
    for theirs in (template, server, holder):
        given = facts(a_vm(cloud="north"), theirs, bands=BANDS, cloud="north")
        overlap = found(given)["band_shared"]
        assert "cloud south" in overlap.cause
        assert "100000 to 199999" in overlap.cause


@pytest.mark.parametrize("vmid", [100_003, 300_003], ids=["in our band", "elsewhere"])
@pytest.mark.parametrize("had", [True, False])
@pytest.mark.parametrize("proven", [True, False])
def test_a_vm_of_this_cloud_that_the_record_lost_is_not_another_clouds(
    vmid: int, had: bool, proven: bool
) -> None:
    lost = a_vm(vmid, STRANGER, cloud="north", project_id="p", user_id="u", proven=proven)
    given = facts(
        a_vm(cloud="north"),
        lost,
        bands=BANDS,
        cloud="north",
        journal=journal(vmid, GONE) if had else {},
    )
    drive = dataclasses.replace(given.inventories["c1"], volumes=(a_drive(vmid, STRANGER),))
    given = dataclasses.replace(given, inventories={"c1": drive})
    [(kind, one)] = found(given).items()
    assert kind == "vm_record_lost"
    assert "of this cloud" in one.cause
    assert ("a copy" in one.cause) is not proven
    assert "destroy" not in str(KINDS[kind].remedy).replace("is ever destroyed", "")


def test_a_vm_whose_description_names_another_cloud_has_lost_its_mark() -> None:
    for cloud in (None, "south"):
        given = facts(a_vm(cloud=cloud), cloud="north", journal=journal(100_001, WEB))
        [one] = differences(given)
        assert one.kind == "mark_lost"
        assert f"names {'cloud south' if cloud else 'no cloud'}" in one.cause


def test_what_is_lost_is_said() -> None:
    disks = (a_volume(100_003, size_bytes=3 << 30), a_volume(100_001), a_drive(100_003, STRANGER))
    holder = a_vm(100_003, None, volume_id="data", proven=True, cloud="us", project_id="p7")
    given = facts(a_vm(cloud="us"), holder, volumes=disks, cloud="us")
    one = found(given)["holder_without_volume"]
    assert losses.sentence(given, one) == (
        "Lost with it: local:100003/vm-100003-disk-0.qcow2 (3.0 GiB), of volume data, project p7."
    )
    blind = dataclasses.replace(given.inventories["c1"], unseen=("Storage s is not available.",))
    hidden = dataclasses.replace(given, inventories={"c1": blind})
    assert losses.sentence(hidden, one).endswith("Not all could be read, so it may be more.")


def test_every_kind_whose_remedy_destroys_says_what_is_lost() -> None:
    words = ("destroy", "pvesm free", "delsnapshot", "orphan reap", "delete /cluster")
    for kind in KINDS.values():
        texts = [text for text in (kind.remedy, kind.doubt) if text is not None]
        removes = any(word in text for text in texts for word in words)
        if kind.name != "vm_record_lost":
            assert removes is kind.destroys or kind.verb.startswith(("remove", "retire")), kind


@pytest.mark.parametrize(
    ("asked", "journalled", "proven"),
    [(True, True, True), (False, True, False), (True, False, False)],
)
def test_a_vm_of_a_deleted_server(asked: bool, journalled: bool, proven: bool) -> None:
    given = facts(
        a_vm(),
        a_vm(100_002, GONE),
        servers=with_servers(a_deleted()),
        journal=journal(100_002, GONE) if journalled else {},
        deleted_on_request=frozenset({GONE} if asked else ()),
    )
    one = found(given)["vm_of_deleted_server"]
    assert one.proven is proven
    assert (one.server_uuid, one.cluster, one.vmid) == (GONE, "c1", 100_002)
    assert one.subject == "c1/100002"


@pytest.mark.parametrize("kind", ["vm_of_deleted_server", "config_drive_without_server"])
def test_a_vm_that_came_back_long_after_its_server_was_deleted(kind: str) -> None:
    """A delete ends once the VM was seen gone: so somebody has restored it."""
    place, at = ("c1", 100_002), NOW - 3 * LATE
    deleted = dataclasses.replace(a_deleted(), deleted_at=at)
    # first seen; None: it was never noted
    for seen, back in ((None, True), (at + LATE / 2, False), (at + 2 * LATE, True)):
        rows = {place: Reservation(*place, "taken", None, "A VM.", seen or NOW)}
        given = facts(
            a_vm(),
            a_vm(100_002, GONE),
            volumes=(a_drive(100_002, GONE),),
            servers=with_servers(deleted),
            reservations=rows if seen else {},
            journal=journal(100_002, GONE),
            deleted_on_request=frozenset({GONE}),
        )
        one = found(given)[kind]
        assert one.proven
        assert one.evidence["came_back"] is back
        if kind == "vm_of_deleted_server":
            assert ("was restored" in one.cause) is back
        # Its description may be read in another look: the VM is there all the same.
        unread = dataclasses.replace(a_vm(100_002, None), read=False)
        inventory = dataclasses.replace(given.inventories["c1"], vms=(a_vm(), unread))
        given = dataclasses.replace(given, inventories={"c1": inventory})
        drive = found(given)["config_drive_without_server"]
        assert drive.evidence["came_back"] is back


def test_a_config_drive_without_vm_did_not_come_back() -> None:
    given = facts(
        a_vm(),
        volumes=(a_drive(100_002, GONE),),
        servers=with_servers(dataclasses.replace(a_deleted(), deleted_at=NOW - 3 * LATE)),
        journal=journal(100_002, GONE),
        deleted_on_request=frozenset({GONE}),
    )
    assert "came_back" not in found(given)["config_drive_without_server"].evidence


def test_a_vm_beside_the_one_that_the_record_has() -> None:
    second = a_vm(100_002, WEB)
    one = found(facts(a_vm(), second, journal=journal(100_002, WEB)))["vm_not_recorded"]
    assert one.proven
    # The only one there is, is never taken.
    alone = found(facts(second, journal=journal(100_002, WEB)))
    assert not alone["vm_not_recorded"].proven
    assert "server_without_vm" in alone


def test_a_vm_of_a_server_that_failed() -> None:
    failed = a_server(OTHER, vm_state="error", vmid=None, addresses=())
    given = facts(
        a_vm(),
        a_vm(100_002, OTHER),
        servers=with_servers(failed),
        journal=journal(100_002, OTHER),
    )
    assert found(given)["vm_not_recorded"].proven
    unproven = dataclasses.replace(given, journal={})
    assert not found(unproven)["vm_not_recorded"].proven
    busy = dataclasses.replace(given, busy=frozenset({OTHER}))
    assert differences(busy) == []


def test_a_vm_of_another_cloud_is_reported() -> None:
    theirs = a_vm(100_002, STRANGER, cloud="south")
    assert "vm_foreign" in found(facts(a_vm(cloud="us"), theirs, cloud="us"))
    # Without a cloud in its mark it may be anybody's.
    for had in ({}, journal(100_002, GONE)):
        one = found(facts(a_vm(), a_vm(100_002, STRANGER), journal=had))["vm_without_server"]
        assert not one.proven
        assert "another cloud" not in one.cause
        assert "qm destroy" not in (KINDS[one.kind].remedy or "")


@pytest.mark.parametrize(
    "vm",
    [
        a_vm(100_002, None),
        a_vm(100_002, WEB, proven=False),
        a_vm(100_002, None, kind="lxc", read=False),
    ],
    ids=["without marks", "copied", "container"],
)
def test_a_foreign_vm_is_reported(vm: SeenVm) -> None:
    one = found(facts(a_vm(), vm))["vm_foreign"]
    assert KINDS[one.kind].verb == "report"


def test_a_vm_that_could_not_be_read_is_no_difference() -> None:
    assert differences(facts(a_vm(), a_vm(100_002, None, read=False))) == []
    assert differences(facts(a_vm(read=False))) == []


@pytest.mark.parametrize("server", [None, OTHER])
def test_another_one_in_the_place_of_a_servers_vm(server: str | None) -> None:
    one = found(facts(a_vm(server=server)))["vm_replaced"]
    assert one.server_uuid == WEB


@pytest.mark.parametrize(
    ("vm", "kind"),
    [
        (a_vm(server=None, smbios_uuid=WEB), "mark_lost"),
        (a_vm(server=OTHER, proven=False, smbios_uuid=WEB), "mark_lost"),
        (a_vm(server=None, image_id="image", smbios_uuid=WEB), "mark_lost"),
        (a_vm(proven=False, smbios_uuid="edited"), "smbios_edited"),
        (a_vm(proven=False), "smbios_edited"),
        (a_vm(server=None, smbios_uuid="edited"), "vm_replaced"),
        (a_vm(server=OTHER, smbios_uuid=OTHER), "vm_replaced"),
        (a_vm(server=None, smbios_uuid=WEB, template=True), "vm_replaced"),
    ],
)
def test_a_mark_that_was_edited(vm: SeenVm, kind: str) -> None:
    given = facts(vm, journal=journal(100_001, WEB))
    assert set(found(given)) == {kind}
    assert KINDS[kind].verb == "report"
    # Without the journal nothing but the fence's own marks is any proof.
    without = dataclasses.replace(given, journal={}, refused=journal(100_001, WEB))
    assert "mark_lost" not in found(without)
    assert differences(dataclasses.replace(given, busy=frozenset({WEB}))) == []


def test_a_template_whose_mark_was_edited() -> None:
    template = a_vm(100_009, None, template=True, name="renamed")
    given = facts(
        a_vm(),
        template,
        cloud="us",
        templates=(TemplateFacts("c1", 100_009, "image"),),
        reservations={PLACE: reserved(), ("c1", 100_009): reserved(100_009, None)},
    )
    one = found(given)["template_unmarked"]
    assert r"micronova: template=image\nmicronova: cloud=us" in one.evidence["marks"]


def test_whose_description_is_read_next() -> None:
    def at(minutes: int) -> datetime.datetime:
        return NOW + datetime.timedelta(minutes=minutes)

    rows = [
        reserved(1, since=at(0)),
        reserved(2, since=at(0), read_at=at(9)),
        reserved(3, since=at(1)),
        reserved(4, since=at(0), read_at=at(2)),
        reserved(5, state="taken", since=at(0)),
    ]
    assert due(rows, frozenset(), 2) == {"c1": frozenset({1, 3})}
    assert due(rows, frozenset({("c1", 2)}), 2) == {"c1": frozenset({2, 1})}
    assert due(rows, frozenset(), 9) == {"c1": frozenset({1, 2, 3, 4})}
    assert due(rows, frozenset(), 0) == {"c1": frozenset()}


def test_a_shell_that_was_left() -> None:
    shell = a_vm(100_002, None, lock="create", maker="UPID:x")
    one = found(facts(a_vm(), shell, journal=journal(100_002, GONE)))["vm_half_made"]
    assert one.server_uuid == GONE
    assert "UPID:x" in one.cause
    bare = a_vm(100_002, None, lock="clone")
    assert "no task of ours" in found(facts(a_vm(), bare))["vm_half_made"].cause
    live = dataclasses.replace(shell, lock_live=True)
    assert differences(facts(a_vm(), live)) == []


def test_disks_that_a_shell_does_not_name_are_freed_with_it() -> None:
    named, left = (a_volume(100_002, ours=True) for _ in range(2))
    left = dataclasses.replace(left, volid="local:100002/vm-100002-disk-1.qcow2")
    strange = dataclasses.replace(left, volid="local:100002/vm-100002-disk-2.qcow2", ours=False)
    elsewhere = dataclasses.replace(left, volid="local:100002/vm-100002-disk-3.qcow2", node="pve2")
    drives = (SeenDrive("scsi0", named.volid),)
    shell = a_vm(100_002, None, lock="clone", maker="UPID:x", drives=drives)
    seen = facts(a_vm(), shell, volumes=(named, left, strange, elsewhere))
    one = found(seen)["vm_half_made"]
    assert one.evidence["disks"] == [left.volid]
    assert filled(str(KINDS["vm_half_made"].remedy), one) == (
        "as root on pve1: qm unlock 100002 && qm destroy 100002 --purge"
        f" && pvesm free {left.volid}"
    )


def test_a_stuck_lock() -> None:
    assert "lock_stuck" in found(facts(a_vm(lock="backup")))
    assert differences(facts(a_vm(lock="backup", lock_live=True))) == []
    assert differences(facts(a_vm(lock="backup"), busy=frozenset({WEB}))) == []


def test_the_lock_of_a_suspended_server_is_its_own() -> None:
    given = facts(a_vm(lock="suspended"))
    assert "lock_stuck" in found(given)
    server = dataclasses.replace(given.servers[WEB], vm_state="suspended")
    assert differences(dataclasses.replace(given, servers={**given.servers, WEB: server})) == []


def test_a_vmid_that_an_open_operation_reserved_is_left_alone() -> None:
    given = facts(
        a_vm(),
        a_vm(100_002, None),
        volumes=(a_volume(100_003),),
        reservations={
            PLACE: reserved(),
            ("c1", 100_002): reserved(100_002, OTHER),
            ("c1", 100_003): reserved(100_003, OTHER),
        },
        busy=frozenset({OTHER}),
    )
    assert differences(given) == []


def test_templates() -> None:
    template = a_vm(100_009, None, image_id="image", cloud="us", template=True, proven=True)
    known: dict[str, Any] = {
        "cloud": "us",
        "templates": (TemplateFacts("c1", 100_009, "image"),),
        "reservations": {PLACE: reserved(), ("c1", 100_009): reserved(100_009, None)},
    }
    assert differences(facts(a_vm(cloud="us"), template, **known)) == []
    unread = dataclasses.replace(template, read=False, image_id=None)
    assert differences(facts(a_vm(cloud="us"), unread, **known)) == []


def test_a_template_that_no_record_names() -> None:
    kind = "template_without_record"
    template = a_vm(100_009, None, image_id="image", cloud="us", template=True, proven=True)
    given = facts(a_vm(), template, cloud="us", template_places=frozenset({("c1", 100_009)}))
    assert found(given)[kind].proven
    assert not found(dataclasses.replace(given, template_places=frozenset()))[kind].proven
    build = OpenOperation(7, "server", OTHER, "create", "running", 1, NOW, None, None)
    assert not found(dataclasses.replace(given, operations=(build,)))[kind].proven
    unmarked = dataclasses.replace(template, cloud=None)
    assert not found(facts(a_vm(), unmarked, cloud="us"))[kind].proven
    theirs = dataclasses.replace(template, cloud="them")
    assert "vm_foreign" in found(facts(a_vm(), theirs, cloud="us"))


# --- volumes


def test_a_volume_without_a_vm() -> None:
    stray = (a_volume(100_002, ours=True),)
    had = found(
        facts(
            a_vm(),
            volumes=stray,
            servers=with_servers(a_deleted()),
            journal=journal(100_002, GONE),
            deleted_on_request=frozenset({GONE}),
        )
    )["volume_without_vm"]
    assert had.proven
    assert had.server_uuid == GONE
    assert had.subject == "c1/pve1/local:100002/vm-100002-disk-0.qcow2"
    nobodys = found(facts(a_vm(), volumes=stray))["volume_foreign"]
    assert not nobodys.proven
    several = facts(a_vm(), volumes=stray, journal=journal(100_002, GONE, OTHER))
    assert not found(several)["volume_without_vm"].proven
    assert differences(facts(a_vm(), volumes=(a_volume(100_001),))) == []


def test_a_volume_that_no_task_of_ours_made_is_reported_only() -> None:
    given = facts(
        a_vm(),
        volumes=(a_volume(100_002),),
        servers=with_servers(a_deleted()),
        journal=journal(100_002, GONE),
        deleted_on_request=frozenset({GONE}),
    )
    assert not found(given)["volume_without_vm"].proven


def test_a_vmid_that_was_refused_was_never_ours() -> None:
    given = facts(
        a_vm(),
        volumes=(a_volume(100_002, ours=True), a_drive(100_003, GONE)),
        servers=with_servers(a_deleted()),
        refused={("c1", 100_002): frozenset({GONE}), ("c1", 100_003): frozenset({GONE})},
        deleted_on_request=frozenset({GONE}),
    )
    by_kind = found(given)
    disk = by_kind["volume_foreign"]
    assert not disk.proven
    assert "passed it over" in disk.cause
    assert "pvesm" not in (KINDS["volume_foreign"].remedy or "")
    # What bears the server's name is the server's all the same.
    assert by_kind["config_drive_without_server"].proven


def test_a_template_that_was_ours_left_a_disk() -> None:
    given = facts(
        a_vm(),
        volumes=(a_volume(100_009),),
        template_places=frozenset({("c1", 100_009)}),
    )
    assert not found(given)["volume_without_vm"].proven


def left_behind(*volumes: SeenVolume, vm: SeenVm | None = None, **changes: Any) -> list[Finding]:
    """What is found of a VM on pve2, as its record says, and of volumes on pve1."""
    values = {"servers": {WEB: a_server(node="pve2")}} | {
        name: changes.pop(name) for name in ("servers", "busy", "journal") if name in changes
    }
    inventory = ClusterInventory(
        "c1", (vm or a_vm(node="pve2"),), volumes, **({"replicas": ()} | changes)
    )
    listed = differences(facts(inventories={"c1": inventory}, **values))
    return [one for one in listed if one.kind in LEFT_BEHIND]


def test_a_copy_that_a_move_left_is_reported_with_its_command() -> None:
    there = dataclasses.replace(a_volume(100_001, size_bytes=1, created_at=NOW), node="pve2")
    older = NOW - datetime.timedelta(minutes=1)
    copy = a_volume(100_001, size_bytes=1, created_at=older)
    [found] = left_behind(there, copy)
    assert (found.kind, found.subject) == ("volume_left_behind", f"c1/pve1/{copy.volid}")
    assert (found.server_uuid, found.node, found.proven) == (WEB, "pve1", False)
    assert KINDS["volume_left_behind"].verb is Verb.REPORT
    assert "pvesm free {volid}" in str(KINDS["volume_left_behind"].remedy)


@pytest.mark.parametrize(
    ("changes", "drive", "proven"),
    [
        ({"journal": journal(100_001, WEB)}, {"created_at": NOW}, True),
        ({"journal": journal(100_001, WEB)}, {}, False),
        ({"journal": journal(100_001, GONE)}, {"created_at": NOW}, False),
        ({}, {"created_at": NOW}, False),
    ],
)
def test_a_drive_that_a_move_left_goes_if_it_is_proven(
    changes: dict[str, Any], drive: dict[str, Any], proven: bool
) -> None:
    there = dataclasses.replace(a_drive(100_001, WEB), **drive)
    [found] = left_behind(there, **changes)
    assert (found.kind, found.subject) == ("config_drive_left_behind", f"c1/pve1/{there.volid}")
    assert (found.server_uuid, found.node, found.proven) == (WEB, "pve1", proven)


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": (SeenReplica(100_001, "pve1"),)},
        {"replicas": None},
        {"vm": a_vm(node="pve2", lock="migrate")},
        {"vm": a_vm(node="pve2", kind="lxc")},
        {"vm": a_vm()},
        {"unseen_nodes": ("pve2",)},
        {"short": True},
        {"busy": frozenset({WEB})},
        {"servers": {WEB: a_server(node="pve1")}},
        {"servers": {WEB: a_server(node=None)}},
        {"servers": {}},
    ],
)
def test_what_may_belong_where_it_is_was_not_left(changes: dict[str, Any]) -> None:
    drive = dataclasses.replace(a_drive(100_001, WEB), created_at=NOW)
    known = journal(100_001, WEB)
    assert left_behind(a_volume(100_001), drive, journal=known, **changes) == []


def test_replicas_of_others_and_to_other_nodes_explain_nothing() -> None:
    jobs = (SeenReplica(100_001, "pve3"), SeenReplica(100_002, "pve1"))
    assert len(left_behind(a_volume(100_001), replicas=jobs)) == 1


def test_volumes_that_the_vm_uses_were_not_left() -> None:
    # A storage that is shared, and a shared one not configured as such in Proxmox VE.
    assert left_behind(a_volume(100_001, shared=True)) == []
    seen = a_volume(100_001, size_bytes=1, created_at=NOW)
    assert left_behind(seen, dataclasses.replace(seen, node="pve2")) == []


def test_a_drive_of_another_server_is_another_finding() -> None:
    assert left_behind(a_drive(100_001, GONE)) == []


def test_what_the_token_is_not_shown_is_no_difference() -> None:
    """The VMs of a template and of a server are hidden, their disks are not."""
    servers = with_servers(a_server(OTHER, vmid=100_002, addresses=()))
    seen = ClusterInventory(
        "c1",
        (),
        (a_volume(100_001), a_volume(100_002), a_volume(100_009), a_drive(100_004, GONE)),
        short=True,
    )
    given = facts(
        inventories={"c1": seen},
        servers=servers,
        templates=(TemplateFacts("c1", 100_009, "image"),),
        reservations={
            PLACE: reserved(),
            ("c1", 100_002): reserved(100_002, OTHER),
            ("c1", 100_009): reserved(100_009, None),
        },
        allocations={WEB: {"rp1": RESOURCES}, OTHER: {"rp1": RESOURCES}},
    )
    assert differences(given) == []
    # With all rights a disk is its VMID's owner's, whom another finding is about.
    whole = dataclasses.replace(given, inventories={"c1": dataclasses.replace(seen, short=False)})
    kinds = {one.kind for one in differences(whole)}
    assert kinds == {"server_without_vm", "volume_foreign"}


def test_a_volume_whose_vmid_another_server_has_by_now_is_reported() -> None:
    other = a_server(OTHER, vmid=100_002, addresses=())
    given = facts(
        a_vm(),
        volumes=(a_volume(100_002, ours=True),),
        servers=with_servers(a_deleted(), other),
        journal=journal(100_002, GONE),
        reservations={PLACE: reserved(), ("c1", 100_002): reserved(100_002, OTHER)},
        allocations={WEB: {"rp1": RESOURCES}, OTHER: {"rp1": RESOURCES}},
    )
    # It is the other one's, whose VM another finding reports.
    assert set(found(given)) == {"server_without_vm"}


def test_a_volume_of_a_server_that_is_worked_on_is_left_alone() -> None:
    given = facts(a_vm(), volumes=(a_volume(100_002),), journal=journal(100_002, OTHER))
    assert differences(dataclasses.replace(given, busy=frozenset({OTHER}))) == []


def test_a_shared_volume_is_one_thing() -> None:
    one = found(facts(a_vm(), volumes=(a_volume(100_002, shared=True),)))["volume_foreign"]
    assert one.subject == "c1/local:100002/vm-100002-disk-0.qcow2"


def test_config_drives() -> None:
    kind = "config_drive_without_server"
    assert differences(facts(a_vm(), volumes=(a_drive(100_001, WEB),))) == []
    left = facts(
        a_vm(),
        volumes=(a_drive(100_002, GONE),),
        servers=with_servers(a_deleted()),
        journal=journal(100_002, GONE),
        deleted_on_request=frozenset({GONE}),
    )
    assert found(left)[kind].proven
    assert not found(dataclasses.replace(left, journal={}))[kind].proven
    assert not found(dataclasses.replace(left, deleted_on_request=frozenset()))[kind].proven
    moved = facts(a_vm(), volumes=(a_drive(100_002, WEB),), journal=journal(100_002, WEB))
    assert found(moved)[kind].proven
    assert differences(dataclasses.replace(moved, busy=frozenset({WEB}))) == []
    assert "volume_foreign" in found(facts(a_vm(), volumes=(a_drive(100_002, STRANGER),)))


# --- servers


def test_a_server_without_a_vm() -> None:
    nothing = {"c1": ClusterInventory("c1")}
    assert "server_without_vm" in found(facts(inventories=nothing))
    error = {WEB: a_server(vm_state="error")}
    assert differences(facts(inventories=nothing, servers=error)) == []
    assert differences(facts(inventories=nothing, busy=frozenset({WEB}))) == []


def test_a_vm_on_another_node() -> None:
    assert "vm_elsewhere" in found(facts(a_vm(node="pve2")))


@pytest.mark.parametrize(
    ("vm", "cause"),
    [
        (a_vm(vcpus=4), "4 CPUs, by the record 2"),
        (a_vm(memory_mib=1024), "1024 MiB of memory, by the record 512"),
    ],
)
def test_a_vm_of_another_size_than_quota_counts(vm: SeenVm, cause: str) -> None:
    assert cause in found(facts(vm))["quota_mismatch"].cause


def test_a_vm_whose_size_is_not_known_is_no_difference() -> None:
    assert differences(facts(a_vm(vcpus=None, memory_mib=None))) == []


@pytest.mark.parametrize(
    "changes", [{"task_state": "powering-off"}, {"vm_state": "building", "task_state": None}]
)
def test_a_server_that_nobody_works_on(changes: dict[str, Any]) -> None:
    servers = {WEB: a_server(**changes)}
    assert "server_abandoned" in found(facts(servers=servers))
    assert differences(facts(servers=servers, busy=frozenset({WEB}))) == []


# --- allocations


@pytest.mark.parametrize(
    "server", [a_deleted(OTHER), a_server(OTHER, vm_state="error", vmid=None, addresses=())]
)
def test_an_allocation_of_a_server_without_a_vm(server: ServerFacts) -> None:
    held = {WEB: {"rp1": RESOURCES}, OTHER: {"rp1": RESOURCES}}
    given = facts(servers=with_servers(server), allocations=held)
    assert found(given)["allocation_without_server"].subject == OTHER
    assert differences(dataclasses.replace(given, busy=frozenset({OTHER}))) == []


def test_what_a_migration_holds_beside_its_server() -> None:
    mine = {WEB: {"rp1": RESOURCES}}
    host = {
        "pve1": HostFact("pve1", "rp1", "c1", "pve1"),
        "pve2": HostFact("pve2", "rp2", "c1", "2"),
    }
    move = HolderFacts("move", WEB, True, "pve2", RESOURCES)
    place = GroupPlace("move", "group", "pve2")
    held = {**mine, "move": {"rp2": RESOURCES}}
    given = facts(holders={"move": move}, hosts=host, allocations=held, group_places=(place,))
    assert differences(given) == []
    for other in (mine, {**mine, "move": {"rp1": RESOURCES}}):
        one = found(dataclasses.replace(given, allocations=other))["migration_allocation_differs"]
        assert (one.subject, one.proven) == ("move", False)
    ended = dataclasses.replace(given, holders={"move": dataclasses.replace(move, open=False)})
    one = found(ended)["migration_allocation_left"]
    assert (one.subject, one.server_uuid, one.proven) == ("move", WEB, True)
    assert "group_place_without_server" in found(ended)
    assert differences(dataclasses.replace(ended, busy=frozenset({WEB}))) == []
    given_back = dataclasses.replace(ended, allocations=mine, group_places=())
    assert differences(given_back) == []


def test_an_allocation_of_somebody_else() -> None:
    held = {WEB: {"rp1": RESOURCES}, STRANGER: {"rp2": {"VCPU": 1}}}
    one = found(facts(allocations=held))["allocation_unknown"]
    assert not one.proven


def test_an_allocation_is_what_the_flavor_asks_beyond_its_sizes() -> None:
    server = a_server(flavor={"extra_specs": {"resources:VCPU": "0", "resources:CUSTOM_X": "1"}})
    taken = {"MEMORY_MB": 512, "DISK_GB": 10, "CUSTOM_X": 1}
    held = {WEB: {"rp1": taken}}
    assert differences(facts(servers=with_servers(server), allocations=held)) == []
    assert "allocation_differs" in found(facts(allocations=held))


def test_a_resized_server_holds_the_larger_of_two_sizes() -> None:
    """Until it is confirmed or reverted; its VM has what its flavor says."""
    claim = {"VCPU": 4, "MEMORY_MB": 512, "DISK_GB": 20}
    flavor = {"vcpus": 2, "memory_mib": 512}
    server = a_server(vm_state="resized", vcpus=4, disk_gib=20, claim=claim, flavor=flavor)
    held = {WEB: {"rp1": claim}}
    assert differences(facts(servers=with_servers(server), allocations=held)) == []
    less = {WEB: {"rp1": RESOURCES}}
    assert "allocation_differs" in found(facts(servers=with_servers(server), allocations=less))
    other = dataclasses.replace(server, flavor={"vcpus": 1, "memory_mib": 512})
    assert "quota_mismatch" in found(facts(servers=with_servers(other), allocations=held))


def test_a_server_without_its_allocation() -> None:
    assert "server_without_allocation" in found(facts(allocations={}))
    assert differences(facts(allocations={}, hosts={})) == []


@pytest.mark.parametrize(
    "held",
    [
        {"rp2": RESOURCES},
        {"rp1": {**RESOURCES, "VCPU": 1}},
        {"rp1": RESOURCES, "rp2": RESOURCES},
    ],
    ids=["elsewhere", "other size", "twice"],
)
def test_an_allocation_that_differs(held: Any) -> None:
    assert "allocation_differs" in found(facts(allocations={WEB: held}))


def test_what_takes_nothing_of_a_resource_is_not_in_placement() -> None:
    servers = {WEB: a_server(disk_gib=0)}
    held = {WEB: {"rp1": {"VCPU": 2, "MEMORY_MB": 512}}}
    assert differences(facts(servers=servers, allocations=held)) == []


# --- ports, VMIDs, operations


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (None, "is unknown"),
        (a_deleted(OTHER), "is deleted"),
        (a_server(OTHER, vm_state="error", vmid=None, addresses=()), "has no VM"),
    ],
)
def test_a_port_whose_server_has_no_vm(server: ServerFacts | None, says: str) -> None:
    ports = (PortFacts("port", WEB, "10.0.0.5"), PortFacts("old", OTHER, None))
    servers = with_servers(*([server] if server else []))
    given = facts(servers=servers, ports=ports)
    one = found(given)["port_without_server"]
    assert says in one.cause
    assert (one.subject, one.server_uuid) == ("old", OTHER)
    assert differences(dataclasses.replace(given, busy=frozenset({OTHER}))) == []


def test_a_place_in_a_group_whose_server_has_no_vm() -> None:
    places = tuple(GroupPlace(uuid, "group", "pve1") for uuid in (WEB, GONE))
    given = facts(servers=with_servers(a_deleted()), group_places=places)
    assert found(given)["group_place_without_server"].subject == GONE
    assert differences(dataclasses.replace(given, busy=frozenset({GONE}))) == []


def test_an_address_that_no_port_holds() -> None:
    one = found(facts(ports=()))["address_without_port"]
    assert "10.0.0.5" in one.cause


@pytest.mark.parametrize("server", [GONE, None])
def test_a_vmid_that_nobody_has(server: str | None) -> None:
    reservations = {PLACE: reserved(), ("c1", 100_002): reserved(100_002, server)}
    given = facts(servers=with_servers(a_deleted()), reservations=reservations)
    assert found(given)["vmid_without_owner"].proven
    seen = {"c1": ClusterInventory("c1", (a_vm(),), unseen=("Node pve2 is offline.",))}
    blind = dataclasses.replace(given, inventories=seen)
    assert not found(blind)["vmid_without_owner"].proven
    unlooked = dataclasses.replace(given, inventories={})
    assert not found(unlooked)["vmid_without_owner"].proven
    stray = {"c1": ClusterInventory("c1", (a_vm(),), (a_volume(100_002),))}
    assert not found(dataclasses.replace(given, inventories=stray))["vmid_without_owner"].proven
    busy = dataclasses.replace(given, busy=frozenset({GONE}))
    assert (server == GONE) == (differences(busy) == [])


def test_a_quarantined_vmid_is_no_difference() -> None:
    row = reserved(100_002, None, state="quarantined")
    assert differences(facts(reservations={PLACE: reserved(), ("c1", 100_002): row})) == []


@pytest.mark.parametrize(
    ("row", "says"),
    [({}, "not reserved"), ({PLACE: reserved(server=OTHER)}, "reserved for other")],
)
def test_a_server_whose_vmid_is_not_reserved(row: Any, says: str) -> None:
    by_kind = found(facts(reservations=row))
    assert says in by_kind["vmid_not_reserved"].cause


@pytest.mark.parametrize(
    ("late", "reported"),
    [(None, False), (datetime.timedelta(seconds=1), False), (OVERDUE, True)],
)
def test_an_operation_that_does_not_end(late: datetime.timedelta | None, reported: bool) -> None:
    deadline = None if late is None else NOW - late
    operation = OpenOperation(
        7, "server", WEB, "delete", "unwinding", 9, NOW, deadline, "The node is off."
    )
    given = facts(operations=(operation,), busy=frozenset({WEB}))
    by_kind = found(given)
    assert ("operation_overdue" in by_kind) is reported
    if reported:
        assert by_kind["operation_overdue"].cause.endswith("deadline: The node is off.")
        assert by_kind["operation_overdue"].subject == "7"


def test_an_operation_that_an_operator_has_wait_is_none_of_them() -> None:
    operation = OpenOperation(7, "server", WEB, "delete", "unwinding", 9, NOW, NOW - OVERDUE, None)
    servers = {WEB: a_server(held=True)}
    given = facts(operations=(operation,), busy=frozenset({WEB}), servers=servers)
    assert differences(given) == []


# --- the table


def test_every_remedy_can_be_filled_in() -> None:
    empty = Finding("k", "s", "cause", True, WEB, "c1", "pve1", 100_001, {})
    for kind in KINDS.values():
        for remedy in (kind.remedy, kind.doubt):
            assert remedy is None or filled(remedy, empty)
        assert kind.proof
    assert set(KINDS) >= BY_CONFIG | BY_FIREWALL | LEFT_BEHIND


def test_no_remedy_promises_what_is_not_proven() -> None:
    for kind in KINDS.values():
        if kind.verb is Verb.DESTROY:
            assert kind.remedy == "micronova orphan reap"
            assert kind.doubt is not None
        else:
            assert "orphan reap" not in (kind.remedy or "")


def test_a_vm_that_was_released_stays_with_its_config_drive() -> None:
    vm, drive = a_vm(100_002, None), a_drive(100_002, GONE)
    released: dict[str, Any] = {
        "servers": with_servers(a_deleted()),
        "journal": journal(100_002, GONE),
    }
    assert found(facts(a_vm(), vm, volumes=(drive,), **released)).keys() == {
        "vm_foreign",
        "config_drive_without_server",
    }
    let_go = released | {"released": frozenset({GONE})}
    assert found(facts(a_vm(), vm, volumes=(drive,), **let_go)) == {}
    assert "config_drive_without_server" in found(facts(a_vm(), volumes=(drive,), **let_go))
