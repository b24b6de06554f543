"""What a restored record and its clusters differ in: what is adopted, left, or lost."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common.messages.facts import MarkedAddress, MarkedPort, NicFacts
from common.messages.inventory import (
    ClusterInventory,
    SeenBackup,
    SeenDrive,
    SeenImageFile,
    SeenReference,
    SeenSnapshot,
    SeenVm,
    SeenVnet,
    SeenVolume,
)
from conductor.audit.facts import (
    AttachmentFacts,
    BackupFacts,
    Facts,
    NetworkFacts,
    PortFacts,
    ServerFacts,
    SnapshotFacts,
    VolumeFacts,
)
from conductor.audit.restoring import comparison
from conductor.audit.restoring.items import Item, Known, Verdict

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
US, THEM = "cloud-1", "cloud-2"
DISK = "rbd:vm-9-disk-0"
ADDRESS = MarkedAddress("10.9.0.5", "10.9.0.0/24", "10.9.0.1")
PORT = MarkedPort("port", "aa", "net", "demo", (ADDRESS,))
NIC = NicFacts("aa", "mnabcdef", None, ("10.9.0.5",), PORT)


def vm(vmid: int = 5, **changes: Any) -> SeenVm:
    """A VM of ours that was read."""
    values = {"read": True, "proven": True, "cloud": US, "project_id": "demo", "user_id": "me"}
    return SeenVm(vmid, "pve1", **{**values, **changes})


def holder(**changes: Any) -> SeenVm:
    return vm(**{"vmid": 9, "volume_id": "data", "held": DISK, **changes})


def server(uuid: str = "web", **changes: Any) -> ServerFacts:
    values = {"project_id": "demo", "user_id": "me", "vm_state": "active", "task_state": None}
    values |= {"operation_id": None, "host": "pve1", "node": "pve1", "cluster": "c1", "vmid": 5}
    values |= {"vcpus": 1, "memory_mib": 1, "disk_gib": 1, "held": False, "addresses": ()}
    return ServerFacts(uuid, **{**values, "deleted_at": None, **changes})


def found(*vms: SeenVm, known: Known | None = None, **changes: Any) -> list[Item]:
    seen = {name: changes.pop(name, ()) for name in ("vnets", "image_files", "backups", "volumes")}
    inventory = ClusterInventory("c1", vms, **seen, short=changes.pop("short", False))
    facts = Facts(NOW, cloud=US, inventories={"c1": inventory}, **changes)
    return comparison.items(facts, known or Known())


def shown(items: list[Item]) -> list[tuple[str, str, str]]:
    return [(one.verdict, one.resource_type, one.resource_id) for one in items]


# --- servers


def test_a_server_made_since() -> None:
    assert shown(found(vm(server_uuid="web"))) == [("adopt", "server", "web")]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"proven": False}, "marks don't agree"),
        ({"template": True}, "a template by now"),
        ({"project_id": None}, "names no project"),
    ],
)
def test_what_isnt_proven_is_left(changes: dict[str, Any], why: str) -> None:
    for one in (vm(server_uuid="web", **changes), holder(**changes)):
        [item] = found(one)
        assert item.verdict is Verdict.LEAVE
        assert why in item.text


def test_others_vms_are_none_of_it() -> None:
    theirs = vm(server_uuid="web", cloud=THEM), vm(server_uuid="web", read=False)
    assert found(*theirs, vm(cloud=THEM, volume_id="v", held=DISK)) == []


def test_a_server_of_the_record_at_its_place() -> None:
    mine = {"servers": {"web": server()}}
    assert found(vm(server_uuid="web"), **mine) == []
    # It got an interface since, which our mark names; an interface of others' is theirs.
    strange = NicFacts("bb", "vmbr0")
    [item] = found(
        vm(server_uuid="web", nics=(NIC, strange)),
        **mine,
        networks={"net": NetworkFacts("net", "net", "mnabcdef", None)},
        known=Known({"net": frozenset({"10.9.0.0/24"})}),
    )
    assert (item.verdict, item.resource_id, "interfaces aa since" in item.text) == (
        *("adopt", "web"),
        True,
    )
    port = PortFacts("port", "web", "10.9.0.5", mac="AA", network_id="net")
    busy = {"busy": frozenset({"web"})}
    for more in ({"ports": (port,)}, busy):
        there = found(
            vm(server_uuid="web", nics=(NIC,)),
            **(mine | more),
            networks={"net": NetworkFacts("net", "net", "mnabcdef", None)},
            known=Known({"net": frozenset({"10.9.0.0/24"})}),
        )
        assert there == []


def test_a_server_of_the_record_elsewhere() -> None:
    away = {"servers": {"web": server(vmid=7)}}
    # It isn't lost where the record says that it is: nobody is to delete it.
    assert shown(found(vm(server_uuid="web"), **away)) == [("adopt", "server", "web")]
    copy = found(vm(server_uuid="web", proven=False), **away)
    assert [one.verdict for one in copy] == ["leave", "lost"]
    [item] = found(vm(server_uuid="web"), vm(7, server_uuid="web"), **away)
    assert (item.verdict, "as well" in item.text) == ("leave", True)
    [item] = found(vm(server_uuid="web"), servers={"web": server(deleted_at=NOW)})
    assert (item.verdict, "deleted before" in item.text) == ("leave", True)


def test_a_server_that_the_cluster_lacks_is_lost_if_all_of_it_was_seen() -> None:
    mine = {"servers": {"web": server()}}
    assert shown(found(**mine)) == [("lost", "server", "web")]
    assert found(**mine, short=True) == []
    assert found(**mine, busy=frozenset({"web"})) == []


# --- volumes, snapshots, backups


def test_a_volume_and_its_snapshots_made_since() -> None:
    shots = (
        SeenSnapshot("s1", snapshot_id="one", user_id="me"),
        SeenSnapshot("s2", snapshot_id="two", whole=False),
        SeenSnapshot("by-hand"),
    )
    assert shown(found(holder(snapshots=shots))) == [
        ("adopt", "volume", "data"),
        ("adopt", "snapshot", "one"),
        ("leave", "snapshot", "two"),
    ]
    known = VolumeFacts("data", "available", "c1", "pve1", 9, DISK)
    there = {
        "volumes": (SeenVolume(DISK, "rbd", "pve1", 9),),
        "snapshots": (SnapshotFacts("one", "data", "available", "s1"),),
    }
    facts = {"volumes": (known,), "snapshots": there["snapshots"]}
    inventory = ClusterInventory("c1", (holder(snapshots=shots[:1]),), there["volumes"])
    seen = Facts(NOW, cloud=US, inventories={"c1": inventory}, **facts)
    assert comparison.items(seen, Known()) == []


def test_a_snapshot_that_is_a_copy_is_no_volume() -> None:
    copy = holder(volume_id="shot", snapshot_of="data")
    assert shown(found(copy)) == [("adopt", "snapshot", "shot")]
    [item] = found(copy, busy_volumes=frozenset({"data"}))
    assert (item.verdict, "operation" in item.text) == ("leave", True)


def test_a_volume_of_the_record_that_a_server_got_since() -> None:
    volume = VolumeFacts("data", "available", "c1", "pve1", 9, DISK)
    user = vm(server_uuid="web", references=(SeenReference(5, "pve1", "scsi3", DISK),))
    listed = (SeenVolume(DISK, "rbd", "pve1", 9),)

    def seen(**changes: Any) -> list[Item]:
        inventory = ClusterInventory("c1", (user, holder()), listed)
        record = {"servers": {"web": server()}, "volumes": (volume,)}
        facts = Facts(NOW, cloud=US, inventories={"c1": inventory}, **record, **changes)
        return comparison.items(facts, Known())

    [item] = seen()
    got = comparison.Attached(("web", 3))
    assert (item.verdict, item.resource_id, item.found) == ("adopt", "data", got)
    assert seen(attachments=(AttachmentFacts("data", "web", "attached", 3),)) == []
    assert seen(busy_volumes=frozenset({"data"})) == []


@pytest.mark.parametrize(
    ("former", "changes", "verdict"),
    [
        (vm(6, server_uuid="db", references=()), {}, "adopt"),
        (
            vm(6, server_uuid="db", references=(SeenReference(6, "pve1", "scsi1", DISK),)),
            {},
            "leave",
        ),
        (vm(6, server_uuid="db"), {}, "leave"),
        (vm(6, read=False), {}, "leave"),
        (vm(6, server_uuid="third", references=()), {}, "adopt"),
        (vm(7), {}, "adopt"),
        (vm(6, server_uuid="db", references=()), {"busy": frozenset({"db"})}, "leave"),
    ],
    ids=["has not", "has too", "references unread", "unread", "another's", "lost", "busy"],
)
def test_a_volume_of_the_record_that_another_server_got_since(
    former: SeenVm, changes: dict[str, Any], verdict: str
) -> None:
    """Else the first one's owner could detach, and delete, what the other one uses."""
    user = vm(server_uuid="web", references=(SeenReference(5, "pve1", "scsi3", DISK),))
    inventory = ClusterInventory(
        "c1", (former, user, holder()), (SeenVolume(DISK, "rbd", "pve1", 9),)
    )
    record = {
        "servers": {"web": server(), "db": server("db", vmid=6)},
        "volumes": (VolumeFacts("data", "in-use", "c1", "pve1", 9, DISK),),
        "attachments": (AttachmentFacts("data", "db", "attached", 1),),
    }
    facts = Facts(NOW, cloud=US, inventories={"c1": inventory}, **record, **changes)
    [item] = [one for one in comparison.items(facts, Known()) if one.resource_type == "volume"]
    assert item.verdict == verdict, item.text
    assert item.found == comparison.Attached(("web", 3), "db")


def test_a_backup_whose_notes_say_whose_it_is() -> None:
    bare = SeenBackup("nfs:backup/a", "nfs", "pve1", "one", US)
    whole = SeenBackup(
        *("nfs:backup/b", "nfs", "pve1", "two", US),
        **{"project_id": "demo", "volume_id": "data", "size_gib": 3},
    )
    theirs = SeenBackup("nfs:backup/c", "nfs", "pve1", "three", THEM)
    backups = (bare, whole, theirs)
    assert shown(found(backups=backups)) == [
        ("leave", "backup", "one"),
        ("adopt", "backup", "two"),
    ]
    known = tuple(BackupFacts(one, "available", "c1", "pve1", None) for one in ("one", "two"))
    inventory = ClusterInventory("c1", backups=backups)
    facts = Facts(NOW, cloud=US, inventories={"c1": inventory}, backups=known)
    assert comparison.items(facts, Known()) == []


# --- images


def test_an_image_of_files() -> None:
    files = tuple(
        SeenImageFile(f"nfs:import/{name}.raw", "nfs", "pve1", *rest)
        for name, *rest in (
            ("a", "one", US, True, 5, "demo", "00"),
            ("b", "one", US, True, 6, "demo", "11"),
            ("c", "two", US, True, 5, "", "00"),
            ("d", "three", THEM, True, 5, "demo", "00"),
        )
    )
    one, two = found(image_files=files)
    assert (one.verdict, one.resource_id) == ("adopt", "one")
    assert one.found.locations == {"c1": "nfs:import/a.raw"}
    assert (two.verdict, two.resource_id) == ("leave", "two")
    assert found(image_files=files, known=Known(images=frozenset({"one", "two"}))) == []
    assert found(image_files=files, busy_images=frozenset({"one", "two"})) == []


def test_the_image_of_a_server_and_a_cached_template() -> None:
    drives = (SeenDrive("scsi0", "rbd:base-8-disk-0"),)
    about = {"image_id": "golden", "template": True, "drives": drives}
    assert shown(found(vm(8, **about))) == [("adopt", "image", "golden")]
    cached = vm(8, **about, project_id=None)
    assert shown(found(cached)) == [("adopt", "template", "golden")]
    known = Known(images=frozenset({"golden"}))
    assert shown(found(vm(8, **about), known=known)) == [("adopt", "template", "golden")]
    assert shown(found(vm(8, **{**about, "template": False}))) == [("leave", "image", "golden")]


# --- networks


def test_a_network_of_a_vnet_and_of_ports() -> None:
    vnet = SeenVnet("mnabcdef", "tenants", "net", US, None, "demo", 5000)
    [item] = found(vnets=(vnet,))
    assert (item.verdict, item.found.vni, "make them again" in item.text) == ("adopt", 5000, True)
    other = vm(6, server_uuid="db", nics=(NIC,), project_id="other")
    item, *servers = found(other, vnets=(vnet,))
    assert shown(servers) == [("adopt", "server", "db")]
    assert (item.found.owner, item.found.projects) == ("demo", {"other"})
    assert item.found.subnets == {"10.9.0.0/24": ADDRESS}
    # On a VLAN no cluster shows it but by its servers.
    tagged = NicFacts("aa", "vmbr1", 1000, ("10.9.0.5",), PORT)
    item, _ = found(vm(server_uuid="web", nics=(tagged,)))
    assert (item.found.bridge, item.found.vlan, item.found.vnets) == ("vmbr1", 1000, [])


def test_networks_that_are_left() -> None:
    bare = SeenVnet("mnabcdef", "tenants", "net", US)
    theirs = SeenVnet("mnabcdeg", "tenants", "theirs", THEM, None, "demo", 5001)
    assert shown(found(vnets=(bare, theirs))) == [("leave", "network", "net")]
    # What isn't proven shows no network.
    copy = vm(server_uuid="web", nics=(NIC,), proven=False)
    assert [one.resource_type for one in found(copy)] == ["server"]


def test_a_network_of_the_record_gets_the_subnets_that_it_lacks() -> None:
    there = {"networks": {"net": NetworkFacts("net", "net", "mnabcdef", None)}}
    web = vm(server_uuid="web", nics=(NIC,))
    item, _ = found(web, **there)
    assert (item.verdict, "Its subnets 10.9.0.0/24" in item.text) == ("adopt", True)
    known = Known({"net": frozenset({"10.9.0.0/24"})})
    assert shown(found(web, **there, known=known)) == [("adopt", "server", "web")]
    # Somebody has moved the interface: it says nothing of the network.
    moved = {"networks": {"net": NetworkFacts("net", "net", "vmbr7", None)}}
    assert shown(found(web, **moved)) == [("adopt", "server", "web")]


def test_clusters_of_another_cloud() -> None:
    theirs = vm(server_uuid="db", cloud=THEM)

    def why(*vms: SeenVm, **servers: ServerFacts) -> str | None:
        inventories = {"c1": ClusterInventory("c1", vms)}
        return comparison.another_clouds(
            Facts(NOW, cloud=US, inventories=inventories, servers=servers)
        )

    assert THEM in str(why(theirs, web=server()))
    # Two clouds share it, it is empty, or there is nothing to be lost.
    assert why(theirs, vm(6, server_uuid="web"), web=server()) is None
    assert why(web=server()) is None
    assert why(theirs) is None
