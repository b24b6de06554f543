"""How far a copy is, by its task's log."""

from __future__ import annotations

from compute.hypervisor.proxmox.api.transfers import Transfers

MIB = 1 << 20
DISK = (
    "volume 'local:580/vm-580-disk-{n}.qcow2' is 'local:580/vm-580-disk-{n}.qcow2' on the target"
)


def read(*lines: str, expected: int = 0) -> Transfers:
    found = Transfers(expected)
    found.read(lines)
    return found


def test_nothing_is_known_before_something_is_copied() -> None:
    assert read("starting migration of VM 580 to node 'pve2' (10.99.0.12)").progress(1) == {}


def test_memory_of_a_live_migration() -> None:
    found = read(
        "2026-11-22 07:26:47 start migrate command to unix:/run/qemu-server/580.migrate",
        "2026-11-22 07:26:48 migration active, transferred 384.0 MiB of 512.0 MiB VM-state, "
        "144.8 MiB/s",
    )
    assert found.progress(3.0) == {
        "memory_bytes": 384 * MIB,
        "memory_total_bytes": 512 * MIB,
        "disk_bytes": 0,
        "disk_total_bytes": 0,
        "percent": 75,
        "seconds_left": 1,
    }


def test_disks_of_a_running_vm_together_with_its_memory() -> None:
    found = read(
        DISK.format(n=0),
        "mirror-scsi0: transferred 5.0 MiB of 1.0 GiB (0.49%) in 0s",
        "mirror-scsi0: transferred 1.0 GiB of 1.0 GiB (100.00%) in 1s, ready",
        "mirror-scsi1: transferred 512.0 MiB of 1.0 GiB (50.00%) in 1s",
        "migration active, transferred 0.0 B of 2.0 GiB VM-state, 1.0 MiB/s",
    ).progress(6.0)
    assert (found["disk_bytes"], found["disk_total_bytes"]) == (1536 * MIB, 2048 * MIB)
    assert (found["percent"], found["seconds_left"]) == (37, 10)


def test_more_memory_than_there_is_when_the_guest_writes() -> None:
    found = read("migration active, transferred 3.0 GiB of 2.0 GiB VM-state, 1.0 MiB/s")
    assert (found.progress(6.0)["percent"], found.progress(6.0)["seconds_left"]) == (100, 0)


def test_disks_of_a_clone_come_one_after_the_other() -> None:
    found = read(
        "create full clone of drive ide2 (local:101/vm-101-cloudinit.qcow2)",
        "transferred 0.0 B of 4.0 MiB (0.00%)",
        "transferred 4.0 MiB of 4.0 MiB (100.00%)",
        "create full clone of drive scsi0 (local:101/base-101-disk-0.qcow2)",
        "transferred 0.0 B of 96.0 MiB (0.00%)",
        "transferred 46.0 MiB of 96.0 MiB (47.92%)",
    ).progress(1.0)
    assert (found["disk_bytes"], found["disk_total_bytes"]) == (50 * MIB, 100 * MIB)


def test_volumes_of_a_stopped_vm_are_measured_by_their_sizes() -> None:
    lines = (
        "2026-11-22 07:25:25 copying local disk images",
        "2026-11-22 07:25:27 15728640 bytes (16 MB, 15 MiB) copied, 1 s, 15.7 MB/s",
        "2026-11-22 07:25:27 10485760 bytes (10 MB, 10 MiB) copied, 1 s, 10.5 MB/s",
    )
    found = read(*lines, expected=60 * MIB)
    assert found.progress(3.0) == {
        "memory_bytes": 0,
        "memory_total_bytes": 0,
        "disk_bytes": 15 * MIB,
        "disk_total_bytes": 60 * MIB,
        "percent": 25,
        "seconds_left": 9,
    }
    found.read(
        [
            "2026-11-22 07:25:28 31457280 bytes (31 MB, 30 MiB) copied, 2 s, 15.7 MB/s",
            f"2026-11-22 07:25:28 {DISK.format(n=0)}",
            "2026-11-22 07:25:29 15728640 bytes (16 MB, 15 MiB) copied, 1 s, 15.7 MB/s",
        ]
    )
    assert found.progress(3.0)["percent"] == 75
