"""Clouds with a storage that is full, or has less room than is written to it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from db.reads.volumes import backends
from simulator.state import disks
from simulator.state.model import MIB
from simulator.state.seed import add_storage
from tests.chaos.test_locked_vms import shell
from tests.chaos.world import World, world

KINDS = ("dir", "btrfs", "lvmthin", "zfspool", "rbd")
BIG = "big"
#: what a storage has left that isn't quite full: volumes are made, and can't be written
LEFT_BYTES = 2 * MIB
#: what a disk has in it
WRITTEN_BYTES = 64 * MIB
REMEDY = re.compile(
    r"as root on (\S+): pvesm status; free space on the storage that is full, then: "
)


@contextlib.contextmanager
def full_cloud(
    folder: Path, kind: str, options: Mapping[str, str] | None = None
) -> Iterator[World]:
    """Run a cloud whose servers are on a storage of this type, unless there are other options."""
    given = options or {"vm_storage": BIG, "linked_clones": "never"}
    with world(folder, {"proxmox:sim1": given}) as cloud:
        if options is None:
            cluster = cloud.simulator.cluster()
            with cluster.turn():
                add_storage(cluster, BIG, kind, shared=kind == "rbd")
        cloud.look()
        cloud.until(cloud.nodes_are_well)
        yield cloud


class Full:
    """Every storage is full until it is freed."""

    def __init__(self, cloud: World) -> None:
        self._cloud = cloud
        self._orders: list[int] = []
        self._capacities: dict[str, int] = {}
        self.fill()

    def fill(self) -> None:
        """Take all room."""
        for name in list(self._cloud.simulator.cluster().storages):
            order = self._cloud.simulator.fault(action="storage-full", storage=name)
            self._orders.append(order)

    def free(self) -> None:
        """Make room; return when that is recorded, else the next request is refused for it."""
        while self._orders:
            self._cloud.simulator.take_back(self._orders.pop())
        cluster = self._cloud.simulator.cluster()
        with cluster.turn():
            for name, capacity in self._capacities.items():
                cluster.storages[name].capacity = capacity
        self._cloud.look()
        self._cloud.until(self._room_is_known)

    def _room_is_known(self) -> bool:
        with self._cloud.engine.connect() as connection:
            return all(one.storage.available_gib for one in backends.read(connection))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.free()


class Narrow(Full):
    """Disks hold data, and a copy of it fits on no storage."""

    def fill(self) -> None:
        """Leave each storage so much room that something can be made, and not written."""
        cluster = self._cloud.simulator.cluster()
        with cluster.turn():
            for volume in list(cluster.volumes.all()):
                disks.resize(cluster, volume, used=max(volume.used, WRITTEN_BYTES))
            for storage in cluster.storages.values():
                used = max(cluster.used(storage, node) for node in cluster.nodes)
                self._capacities[storage.id] = storage.capacity
                storage.capacity = used + LEFT_BYTES


def follow(cloud: World, folder: Path, remedy: str, full: Full) -> None:
    """Do what the fault says: see which storage is full, and free space there."""
    found = REMEDY.match(remedy)
    assert found, remedy
    assert found[1] in cloud.simulator.cluster().nodes
    listed = shell(cloud, folder).run(f"as root on {found[1]}: pvesm status")
    room = [int(one) for one in re.findall(r'"avail": ([0-9]+)', listed)]
    assert min(room) <= LEFT_BYTES, listed
    full.free()


FULL, NARROW = "full", "narrow"
HOW: Mapping[str, type[Full]] = {FULL: Full, NARROW: Narrow}
