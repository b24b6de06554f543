"""Servers that a person migrates, with the storage options that nobody set.

On the real cluster none could be: the config drive and the linked clone on a node's own storage
each stopped it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proxmoxer import ProxmoxAPI

from common.context import RequestContext
from db import schema
from tests.chaos.world import World, world

BOSS = RequestContext(user_id="boss", project_id="p", roles=["admin"], is_admin=True)
NODES = ("pve1", "pve2")


def options(**storage: str) -> dict[str, dict[str, str | None]]:
    """Storage options at their defaults but for these; nodes are read each second."""
    defaults = dict.fromkeys(("linked_clones", "vm_storage", "iso_storage"))
    return {"compute": {"detail_seconds": "1"}, "proxmox:sim1": {**defaults, **storage}}


def config_of(cloud: World, row: Any) -> dict[str, str]:
    """The VM's configuration."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        return dict(cluster.vms[row.vmid].config)


def migrate(cloud: World, row: Any, source: str, target: str, **values: int) -> str:
    """What a person does in the cluster's own interface; how the node's task ended."""
    host, _, port = cloud.simulator.endpoints[0]["url"].removeprefix("https://").rpartition(":")
    root = ProxmoxAPI(
        host,
        port=int(port),
        user="root@pam",
        password=cloud.simulator.password,
        verify_ssl=str(cloud.simulator.options.state_dir / "ca.pem"),
    )
    node = root.nodes(source)
    upid = node.qemu(row.vmid).migrate.post(target=target, **values)
    ended: dict[str, Any] = cloud.until(
        lambda: (task := node.tasks(upid).status.get())["status"] == "stopped" and task
    )
    return str(ended["exitstatus"])


def followed(cloud: World, row: Any, target: str) -> None:
    """Return when the record, the allocation and an audit agree that the server is there."""
    hosts = {host.host: host.uuid for host in cloud.rows(schema.hosts.select())}

    def there() -> bool:
        seen = cloud.server(row.uuid)
        return (seen.host, seen.node, seen.vmid) == (target, target, row.vmid) and all(
            (row.uuid in cloud.placement.provider_allocations(uuid)) == (host == target)
            for host, uuid in hosts.items()
        )

    cloud.until(there)
    cloud.until(lambda: not cloud.differences())
    assert cloud.audit_problem() == ""


def other(node: str) -> str:
    """The other node of two."""
    return next(one for one in NODES if one != node)


def pinned(cloud: World) -> dict[str, str]:
    """Server → why ``rebalance`` leaves it where it is."""
    return {one.server_uuid: one.reason for one in cloud.client.rebalance(BOSS, 10).pinned}


def lost_with(cloud: World, host: str) -> dict[str, str]:
    """Server → why ``capacity --without`` that host can't have it elsewhere."""
    return {one.server_uuid: one.kept for one in cloud.client.evacuation(BOSS, host)}


def stopped(cloud: World, row: Any) -> None:
    """Stop the server."""
    cloud.act(row.uuid, "stop")
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "stopped")


def test_on_shared_storage_a_server_is_moved_online_and_offline(tmp_path: Path) -> None:
    with world(tmp_path, options()) as cloud:
        row = cloud.built("mobile")
        config = config_of(cloud, row)
        assert config["scsi0"].startswith("shared:")
        assert config["ide2"].startswith("shared:iso/")
        target = other(row.node)
        assert migrate(cloud, row, row.node, target, online=1) == "OK"
        followed(cloud, row, target)
        assert cloud.server(row.uuid).vm_state == "active"
        stopped(cloud, row)
        assert migrate(cloud, row, target, row.node) == "OK"
        followed(cloud, row, row.node)
        assert cloud.server(row.uuid).vm_state == "stopped"
        assert pinned(cloud) == {}
        assert lost_with(cloud, row.node) == {row.uuid: ""}
        cloud.act(row.uuid, "start")
        cloud.until(lambda: cloud.server(row.uuid).vm_state == "active")
        assert cloud.faults(row.uuid) == []


def test_a_whole_disk_on_local_storage_moves_with_its_stopped_server(tmp_path: Path) -> None:
    with world(tmp_path, options(vm_storage="local")) as cloud:
        row = cloud.built("whole")
        config = config_of(cloud, row)
        assert config["scsi0"].startswith("local:")
        assert "base-" not in config["scsi0"]
        assert config["ide2"].startswith("shared:iso/")
        stopped(cloud, row)
        target = other(row.node)
        assert migrate(cloud, row, row.node, target) == "OK"
        followed(cloud, row, target)
        assert pinned(cloud) == {}
        # It can be moved by hand, but not be had once its node is gone.
        assert lost_with(cloud, target) == {
            row.uuid: "its disk is on the node's own storage local"
        }


def test_a_server_that_local_storage_keeps_is_named_with_its_reason(tmp_path: Path) -> None:
    with world(tmp_path, options(iso_storage="local")) as cloud:
        row = cloud.built("kept")
        reason = "its config drive is on the node's own storage local"
        cloud.until(lambda: lost_with(cloud, row.node) == {row.uuid: reason})
        # A move of ours takes it out before, and makes it again on the other node.
        assert pinned(cloud) == {}
        stopped(cloud, row)
        assert migrate(cloud, row, row.node, other(row.node)) == "migration aborted"
        followed(cloud, row, row.node)
