"""One cluster: its objects, the mutex that guards them, its locks, and saving them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from simulator.console.consoles import Consoles
from simulator.engine import Acquire, Engine, Lock, Process, Release, Sleep, Work
from simulator.errors import (
    NO_QUORUM,
    LockedCommandTimeout,
    PveError,
    flock_timeout,
    no_config,
    no_node,
    no_storage,
    read_only,
)
from simulator.state.access import Access
from simulator.state.faults import Faults
from simulator.state.firewall_config import Firewall
from simulator.state.ha_config import HaConfig
from simulator.state.history import History
from simulator.state.model import Migration, Node, PciMapping, Pool, Storage, Task, Vm, Volume
from simulator.state.persistence import Store
from simulator.state.sdn_config import Sdn
from simulator.state.tasks import TaskBook
from simulator.state.volumes import Place, VolumeStore, parse_volid
from simulator.versions import Version

STORAGE_WAIT = 10.0
STORAGE_WORK_CAP = 60.0
VM_LOCK = "/var/lock/qemu-server/lock-{}.conf"
STORAGE_LOCK = "/var/lock/pve-manager/pve-storage-{}"
CLUSTER_LOCK_LEASE = 120.0
KEPT_LOCKS = 20_000


@dataclass(frozen=True)
class Identity:
    """Number, name and version of a cluster."""

    index: int
    name: str
    version: Version


class Cluster:
    """A Proxmox VE cluster. Everything but the constructor needs its mutex (`turn`)."""

    def __init__(self, identity: Identity, engine: Engine, store: Store, access: Access) -> None:
        self.index, self.name, self.version = identity.index, identity.name, identity.version
        self.engine = engine
        self.authority = ""
        """The certificate of who signs the nodes', as PEM; empty without TLS."""
        self.access = access
        self.nodes: dict[str, Node] = {}
        self.storages: dict[str, Storage] = {}
        self.pools: dict[str, Pool] = {}
        self.mappings: dict[str, PciMapping] = {}
        self.ha, self.sdn = HaConfig(), Sdn()
        self.shares: dict[str, dict[str, dict[str, str]]] = {}
        self.firewalls: dict[str, Firewall] = {}
        self.vms: dict[int, Vm] = {}
        self.history = History()
        self.migrations: dict[int, Migration] = {}
        self.volumes = VolumeStore()
        self.data: dict[str, bytes] = {}
        self.options: dict[str, Any] = {"mac_prefix": "BC:24:11"}
        self.faults = Faults()
        self.consoles = Consoles()
        self.tasks = TaskBook(engine, self.turn, self._save_task, self._drop_task)
        self.stats: dict[int, dict[str, Any]] = {}
        self.stats_at = float("-inf")
        self.memory: dict[str, int] = {}
        self.memory_at = float("-inf")
        self._store = store
        self._guard = threading.RLock()
        self._depth = 0
        self._dirty: dict[tuple[str, str], object | None] = {}
        self._locks: dict[str, Lock] = {}
        #: processes without a task: cleaning up after VMs, requests to the HA manager
        self.background: set[Process] = set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the cluster's mutex; save what changed at the end."""
        with self._guard:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._dirty:
                    self._flush()

    def _flush(self) -> None:
        for vmid in [int(key) for kind, key in self._dirty if kind == "vm"]:
            spans = self.history.see(vmid, self.vms.get(vmid))
            if spans is not None:
                self.save("history", str(vmid), spans)
        changes = [(kind, key, value) for (kind, key), value in self._dirty.items()]
        self._dirty.clear()
        self._store.write(self.index, changes)

    def save(self, kind: str, key: str, value: object) -> None:
        """Mark an object to be saved when the mutex is released."""
        self._dirty[(kind, key)] = value

    def drop(self, kind: str, key: str) -> None:
        """Mark an object to be removed when the mutex is released."""
        self._dirty[(kind, key)] = None

    def _save_task(self, task: Task) -> None:
        self.save("task", task.upid, task)

    def _drop_task(self, task: Task) -> None:
        self.drop("task", task.upid)

    def running_tasks(self) -> list[Process]:
        """Return the workers that run now."""
        with self.turn():
            return list(self.tasks.running.values())

    def save_access(self) -> None:
        """Mark users, grants and custom roles to be saved; drop cached privileges."""
        self.access.changed()
        self.save("access", "users", list(self.access.users.values()))
        self.save("access", "grants", self.access.grants)
        roles = self.access.roles
        custom = {name: sorted(privs) for name, privs in roles.items()}
        self.save("access", "roles", custom)

    # nodes and quorum

    def node(self, name: str) -> Node:
        """Return the node of that name. Raises the resolver's error for others."""
        node = self.nodes.get(name)
        if node is None:
            raise no_node(name)
        return node

    @property
    def members(self) -> list[Node]:
        """Return the nodes that were not taken out of the cluster: what lists show."""
        return [node for node in self.nodes.values() if not node.left]

    @property
    def quorate(self) -> bool:
        """Return whether more than half of the nodes are up."""
        if self.faults.standing("no-quorum"):
            return False
        return 2 * sum(node.up for node in self.members) > len(self.members)

    def check_quorum(self) -> None:
        """Raise 500 without quorum."""
        if not self.quorate:
            raise PveError(NO_QUORUM)

    # machines

    def vm(self, node: str, vmid: int) -> Vm:
        """Return the VM whose configuration is on a node. Raises 500 if there is none."""
        vm = self.vms.get(vmid)
        if vm is None or vm.node != node:
            raise no_config(node, vmid)
        return vm

    def edit(self, vm: Vm) -> Vm:
        """Open a configuration for writing: it is saved when the mutex is released."""
        if not self.quorate:
            raise read_only(vm.node, vm.vmid, self.nodes[vm.node].last_pid)
        return self.touch(vm)

    def touch(self, vm: Vm) -> Vm:
        """Mark a VM's running state to be saved, which needs no quorum."""
        self.save("vm", str(vm.vmid), vm)
        return vm

    def add_vm(self, vm: Vm) -> Vm:
        """Add a configuration to the cluster."""
        self.vms[vm.vmid] = vm
        return self.edit(vm)

    def remove_vm(self, vm: Vm) -> None:
        """Remove a configuration."""
        self.edit(vm)
        self.vms.pop(vm.vmid, None)
        self.stats.pop(vm.vmid, None)
        self.drop("vm", str(vm.vmid))

    def set_pool(self, vmid: int, poolid: str | None) -> None:
        """Move a VM into a pool, or out of all."""
        old = self.access.pool_of.pop(vmid, None)
        if old is not None and old in self.pools:
            self.pools[old].vms.remove(vmid)
            self.save("pool", old, self.pools[old])
        if poolid is not None:
            self.pools[poolid].vms.append(vmid)
            self.access.pool_of[vmid] = poolid
            self.save("pool", poolid, self.pools[poolid])
        if old is not None or poolid is not None:
            self.access.changed()

    # storages and volumes

    def storage(self, storage: str) -> Storage:
        """Return the storage of that id. Raises 500 if there is none."""
        found = self.storages.get(storage)
        if found is None:
            raise no_storage(storage)
        return found

    def enabled_storage(self, storage: str, node: str) -> Storage:
        """Return the storage if it is enabled and on the node. Raises 500 otherwise."""
        found = self.storage(storage)
        if found.disabled:
            raise PveError(f"storage '{storage}' is disabled")
        if not found.on(node):
            raise PveError(f"storage '{storage}' is not available on node '{node}'")
        if self.offline(storage, node):
            raise PveError(f"storage '{storage}' is not online")
        return found

    def offline(self, storage: str, node: str) -> bool:
        """Return whether a node can't reach a storage now."""
        return bool(self.faults.standing("storage-offline", storage=storage, node=node))

    def place(self, storage: str, node: str) -> Place:
        """Return the place of a node's volumes on a storage."""
        return (storage, "" if self.storage(storage).shared else node)

    def volume(self, volid: str, node: str) -> Volume | None:
        """Return the volume that a node sees under a volume id."""
        name = parse_volid(volid)
        return self.volumes.get(self.place(name.storage, node), name.name)

    def add_volume(self, volume: Volume) -> Volume:
        """Add a volume to its storage."""
        self.volumes.add(volume)
        self.save("volume", f"{volume.storage}/{volume.node}/{volume.name}", volume)
        return volume

    def remove_volume(self, volume: Volume) -> None:
        """Remove a volume from its storage."""
        self.volumes.remove(volume)
        key = f"{volume.storage}/{volume.node}/{volume.name}"
        self.drop("volume", key)
        if self.data.pop(key, None) is not None:
            self.drop("data", key)

    def keep_data(self, volume: Volume, data: bytes) -> None:
        """Store the bytes of a small volume."""
        key = f"{volume.storage}/{volume.node}/{volume.name}"
        self.data[key] = data
        self.save("data", key, data)

    def used(self, storage: Storage, node: str) -> int:
        """Return the bytes used on a storage."""
        if self.faults.standing("storage-full", storage=storage.id, node=node):
            return storage.capacity
        base = 2 << 30
        return min(storage.capacity, base + self.volumes.used(self.place(storage.id, node)))

    # locks

    def lock(self, path: str, lease: float = 0.0) -> Lock:
        """Return the lock of that name; with a lease if it is one of the cluster file system."""
        found = self._locks.get(path)
        if found is None:
            if len(self._locks) > KEPT_LOCKS:
                self._locks = {lock.name: lock for lock in self.locks()}
            found = self._locks[path] = Lock(path, lease)
        return found

    def locks(self) -> list[Lock]:
        """Return the locks that are held or waited for."""
        return [lock for lock in self._locks.values() if lock.holders or lock.waiters]

    def lock_vm(
        self, node: str, vmid: int, timeout: float = 10.0, *, shared: bool = False
    ) -> Work:
        """Take the lock of a VM's configuration on a node; return it, or raise after the wait."""
        lock = self.vm_lock(node, vmid)
        if not (yield Acquire(lock, timeout, shared)):
            raise flock_timeout(VM_LOCK.format(vmid))
        return lock

    def vm_lock(self, node: str, vmid: int) -> Lock:
        """Return the lock of a VM's configuration on a node."""
        return self.lock(f"{node}:{VM_LOCK.format(vmid)}")

    def storage_lock(self, storage: str, node: str) -> Lock:
        """Return a storage's lock; nodes that share the storage share it."""
        if self.storage(storage).shared:
            return self.lock(f"storage-{storage}", CLUSTER_LOCK_LEASE)
        return self.lock(f"{node}:{STORAGE_LOCK.format(storage)}")

    def lock_storage(self, storage: str, node: str) -> Work:
        """Take a storage's lock; return it, or raise after the wait."""
        lock = self.storage_lock(storage, node)
        if not (yield Acquire(lock, STORAGE_WAIT)):
            if self.storage(storage).shared:
                raise PveError(f"cfs-lock 'storage-{storage}' error: got lock request timeout")
            raise flock_timeout(STORAGE_LOCK.format(storage))
        return lock

    def storage_work(self, storage: str, node: str, lock: Lock, seconds: float) -> Work:
        """Work for some seconds under a storage's lock, then release it."""
        for fault in self.faults.standing("storage-slow", storage=storage, node=node):
            seconds += fault.seconds
        yield Sleep(min(seconds, STORAGE_WORK_CAP))
        if seconds > STORAGE_WORK_CAP:
            raise LockedCommandTimeout(storage)
        yield Release(lock)

    def uptime(self, node: Node) -> int:
        """Return the seconds since a node booted."""
        return int(time.time() - node.booted)
