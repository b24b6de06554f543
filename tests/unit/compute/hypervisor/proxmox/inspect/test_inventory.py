"""What an inventory reads from lists of Proxmox VE."""

from __future__ import annotations

from common.messages.inventory import SeenReplica
from compute.hypervisor.proxmox.inspect.inventory import replicas


def test_every_replication_job_says_where_it_keeps_copies() -> None:
    jobs = [
        {"guest": 100, "id": "100-0", "jobnum": 0, "target": "pve2", "type": "local"},
        {"guest": 100, "id": "100-1", "jobnum": 1, "target": "pve3", "type": "local"},
        # The copies are there until the job is gone.
        {"guest": 101, "id": "101-0", "jobnum": 0, "target": "pve2", "remove_job": "full"},
    ]
    expected = (SeenReplica(100, "pve2"), SeenReplica(100, "pve3"), SeenReplica(101, "pve2"))
    assert replicas(jobs) == expected
