"""What a new size changes of a configuration."""

from __future__ import annotations

from common.messages.commands import Size
from compute.hypervisor.proxmox.vmconfig import size

CONFIG = {
    "cores": 2,
    "memory": "512",
    "cpu": "host",
    "scsi0": "local:vm-1-disk-0,size=2G",
    "net0": "virtio=FA:16:3E:00:00:01,bridge=vmbr0,tag=7",
    "description": "micronova: server=x",
}


FORMER = Size(2, 512)


def changes(new: Size, former: Size = FORMER, **config: object) -> dict[str, str]:
    return size.changes({**CONFIG, **config}, new, former, {}, "host")


def test_the_same_size_changes_nothing() -> None:
    assert changes(FORMER) == {}


def test_only_what_the_size_decides_is_changed() -> None:
    assert changes(Size(4, 1024)) == {"cores": "4", "memory": "1024"}
    assert changes(Size(4, 512, {"hw:cpu_sockets": "2"})) == {"sockets": "2"}
    assert changes(Size(4, 512), sockets=2) == {"cores": "4", "delete": "sockets"}


def test_what_an_operator_gave_it_stays() -> None:
    more = {"cpu": "kvm64", "hostpci0": "0000:01:00.0", "watchdog": "model=ib700", "numa": 1}
    assert changes(Size(4, 512), **more) == {"cores": "4"}


def test_what_the_former_size_had_goes() -> None:
    former = Size(2, 512, {"hw:watchdog_action": "reset"})
    watchdog = "action=reset,model=i6300esb"
    assert changes(FORMER, former, watchdog=watchdog) == {"delete": "watchdog"}
    # The order of a value's parts means nothing.
    assert changes(former, FORMER, watchdog=watchdog) == {}


def test_queues_follow_the_processors() -> None:
    specs = {"hw:vif_multiqueue_enabled": "true"}
    queued = f"{CONFIG['net0']},queues=4"
    assert changes(Size(4, 512, specs))["net0"] == queued
    assert changes(FORMER, Size(4, 512, specs), net0=queued)["net0"] == CONFIG["net0"]


def test_numa_nodes_come_and_go() -> None:
    nodes = Size(4, 1024, {"hw:numa_nodes": "2"})
    given = changes(nodes)
    assert given["numa"] == "1"
    assert "memory=512" in given["numa1"]
    numa = {name: value for name, value in given.items() if name.startswith("numa")}
    assert changes(FORMER, nodes, **numa) == {"delete": "numa,numa0,numa1"}
