"""Which node takes an upload, and what a delete does while the cluster has no quorum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chaos.world import World, world


def calls(cloud: World, method: str, ending: str, since: int = 0) -> list[dict[str, Any]]:
    """Requests that reached the cluster, with the node whose endpoint took each."""
    return [
        one
        for one in cloud.simulator.recorder.since(since)
        if one["method"] == method and one["path"].endswith(ending)
    ]


def test_a_config_drive_is_uploaded_to_its_own_node(tmp_path: Path) -> None:
    """Another node copied it there by ssh, which took 43 s once."""
    with world(tmp_path, each_node=True) as cloud:
        nodes = set(cloud.simulator.cluster().nodes)
        service: Any = cloud._services["compute"]
        # Each node has to have been asked whose endpoint it is, by the agent itself.
        cloud.until(lambda: set(service._hypervisors["sim1"].shared.client.own) == nodes)
        for number in range(3):
            for node in nodes:
                row = cloud.built(f"{node}-{number}", host=node)
                assert (row.vm_state, row.node) == ("active", node)
        uploads = calls(cloud, "POST", "/upload")
        assert len(uploads) == 3 * len(nodes)
        assert all(f"/nodes/{one['node']}/" in one["path"] for one in uploads)


def test_a_delete_without_quorum_touches_nothing_and_ends_with_quorum(tmp_path: Path) -> None:
    """Proxmox VE removed the disks, and then could not remove the configuration."""
    with world(tmp_path) as cloud:
        row = cloud.built("isolated")
        before = cloud.simulator.state()["sim1"]
        asked = len(cloud.simulator.recorder.since(0))
        cloud.simulator.fault(action="no-quorum")
        cloud.act(row.uuid, "delete")
        # More than one try: what waits is tried again.
        cloud.until(lambda: len(cloud.faults(row.uuid)) >= 2)
        waiting = cloud.server(row.uuid)
        assert (waiting.task_state, waiting.deleted_at) == ("deleting", None)
        assert {fault.category for fault in cloud.faults(row.uuid)} == {"node_unhealthy"}
        after = cloud.simulator.state()["sim1"]
        for what in ("pid", "config"):
            assert [vm[what] for vm in after["vms"]] == [vm[what] for vm in before["vms"]]
        assert after["volumes"] == before["volumes"]
        changing = [one for one in cloud.simulator.recorder.since(asked) if one["method"] != "GET"]
        assert changing == []
        cloud.calm()
        cloud.until(lambda: cloud.server(row.uuid).deleted_at)
        assert row.vmid not in {vm["vmid"] for vm in cloud.simulator.state()["sim1"]["vms"]}
