"""Drives of a virtual machine: parse their options, and create the volumes they ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from simulator import propstring
from simulator.engine import Release, Work
from simulator.errors import PveError, parameter_errors
from simulator.request.vmschema import is_drive
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import KIB, ConfigMap, Vm, Volume
from simulator.state.storage_kinds import QCOW2, RAW, kind
from simulator.state.tasks import Job
from simulator.state.volumes import content_of, image_name, parse_volid, path_of

_NEW_DISK = re.compile(r"^([^/:\s]+):([0-9]+(?:\.[0-9]+)?)$")
#: seconds that a copy waits for the lock of the VM whose disk it copies
IMPORT_LOCK_WAIT = 30.0
_NOT_KEPT = ("file", "import-from", "format")


@dataclass
class Drive:
    """A parsed drive option."""

    name: str
    file: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def new(self) -> tuple[str, float] | None:
        """Return storage and size in GiB if the drive asks for a new volume."""
        match = _NEW_DISK.match(self.file)
        return (match.group(1), float(match.group(2))) if match else None

    @property
    def storage(self) -> str:
        """The storage that the drive is on, or empty."""
        return self.file.partition(":")[0] if ":" in self.file else ""

    @property
    def cloudinit(self) -> bool:
        """Return whether this is a cloud-init drive, existing or to be created."""
        tail = self.file.rpartition("/")[2]
        return self.file.endswith(":cloudinit") or bool(re.match(r"vm-[0-9]+-cloudinit", tail))

    @property
    def cdrom(self) -> bool:
        """Return whether this is a CD-ROM, cloud-init drives included."""
        return self.cloudinit or self.options.get("media") == "cdrom"

    def text(self) -> str:
        """Return the option as it is in a configuration."""
        kept = {key: value for key, value in self.options.items() if key not in _NOT_KEPT}
        return propstring.join(self.file, kept)


def parse_drive(name: str, text: str) -> Drive:
    """Parse a drive option."""
    found = propstring.split(text, "file")
    return Drive(name, found.pop("file", ""), found)


def stored_drive(config: Mapping[str, str], name: str) -> Drive:
    """Return a drive that has a volume. Raises PveError for any other."""
    if name not in config:
        raise PveError(f"disk '{name}' does not exist")
    drive = parse_drive(name, config[name])
    if not drive.storage:
        raise PveError(f"disk '{name}' has no associated volume")
    return drive


def drives_of(config: Mapping[str, str], *, unused: bool = False) -> Iterator[Drive]:
    """Yield the drives of a configuration by name, optionally unused disks too."""
    for name in sorted(config):
        if is_drive(name) or (unused and name.startswith("unused")):
            yield parse_drive(name, config[name])


def used(vm: Vm, name: str, volid: str) -> bool:
    """Return whether a snapshot, or a drive other than the one named, uses a volume too."""

    def names(config: ConfigMap, but: str) -> bool:
        return any(one.file == volid and one.name != but for one in drives_of(config))

    return names(vm.config, name) or any(names(one.config, "") for one in vm.snapshots.values())


def check_syntax(params: dict[str, str]) -> None:
    """Raise a 400 for malformed drives."""
    for name in sorted(params):
        if not is_drive(name):
            continue
        drive = parse_drive(name, params[name])
        new = drive.new
        if "import-from" in drive.options and (new is None or new[1] != 0):
            raise parameter_errors(
                {
                    name: "'import-from' requires special syntax - "
                    "use <storage ID>:0,import-from=<source>"
                }
            )
        is_iso = ":" in drive.file and content_of(drive.file.partition(":")[2]) == "iso"
        if is_iso and drive.options.get("media") != "cdrom":
            raise parameter_errors({name: "explicit 'media=cdrom' is required for iso images"})


@dataclass
class Builder:
    """Creates the volumes of one VM; `made` lists what to free if a later one fails."""

    cluster: Cluster
    node: str
    vmid: int
    job: Job | None
    made: list[Volume] = field(default_factory=list)
    before_copy: Callable[[Volume], None] | None = None

    def build(self, params: Mapping[str, str]) -> Work:
        """Create the volumes that drives ask for; return the drives as they are to be stored."""
        built: dict[str, str] = {}
        for drive in drives_of(params):
            done = yield from self._one(drive)
            built[drive.name] = done.text()
        return built

    def _one(self, drive: Drive) -> Work:
        new = drive.new
        if drive.file in ("none", "cdrom"):
            return drive
        if drive.cloudinit and drive.file.endswith(":cloudinit"):
            yield from self._cloudinit(drive)
        elif new is not None and "import-from" in drive.options:
            yield from self._import(drive, new[0])
        elif new is not None:
            yield from self._empty(drive, *new)
        else:
            self._existing(drive)
            return drive
        if self.job is not None:
            self.job.log(f"{drive.name}: successfully created disk '{drive.text()}'")
        return drive

    def _cloudinit(self, drive: Drive) -> Work:
        storage = self.cluster.storage(drive.storage)
        image_format = drive.options.get("format", QCOW2) if kind(storage).files else RAW
        name = image_name(storage, self.vmid, "cloudinit", image_format)
        volume = yield from disks.allocate(
            self.cluster,
            self.job,
            self.node,
            drive.storage,
            self.vmid,
            image_format,
            disks.CLOUDINIT_SIZE,
            name,
        )
        self.made.append(volume)
        drive.file = volume.volid
        drive.options["media"] = "cdrom"

    def _empty(self, drive: Drive, storage: str, gibibytes: float) -> Work:
        size = int(gibibytes * (1 << 30))
        self._check_format(drive, storage)
        default = kind(self.cluster.storage(storage)).formats[0]
        image_format = drive.options.get("format", default)
        if drive.name == "efidisk0":
            size = 528 * KIB if drive.options.get("efitype") == "4m" else 128 * KIB
        elif drive.name == "tpmstate0":
            size, image_format = disks.CLOUDINIT_SIZE, "raw"
        volume = yield from disks.allocate(
            self.cluster, self.job, self.node, storage, self.vmid, image_format, size, exact=True
        )
        self._use(drive, volume, size)

    def _import(self, drive: Drive, storage: str) -> Work:
        wanted = drive.options["import-from"]
        source, managed = self._source(wanted), not wanted.startswith("/")
        self._check_format(drive, storage)
        own = disks.default_format(source.name) if managed else "raw"
        try:
            lock = yield from self._lock_owner(source)
        except PveError as error:
            raise PveError(f"cannot import from '{wanted}' - {error.text}") from error
        image_format = drive.options.get("format", own)
        if self.job is not None and managed:
            self.job.log(f"create full clone of drive ({wanted})")
        size = source.virtual_size or source.size
        volume = yield from disks.allocate(
            self.cluster, self.job, self.node, storage, self.vmid, image_format, size
        )
        self._use(drive, volume)
        if self.job is None:
            return
        if managed:
            self.job.log(f"allocated target volume '{volume.volid}'")
        if self.before_copy is not None:
            self.before_copy(volume)
        try:
            yield from disks.copy(self.cluster, self.job, self.node, source, volume)
        except PveError as error:
            raise PveError(f"cannot import from '{wanted}' - {error.text}") from error
        if lock is not None:
            yield Release(lock)

    def _check_format(self, drive: Drive, storage: str) -> None:
        wanted = drive.options.get("format")
        if wanted:
            disks.require_format(self.cluster.storage(storage), wanted)

    def _lock_owner(self, source: Volume) -> Work:
        """Lock the VM whose disk is copied, for all others if it runs; return the lock, if any.

        A VM's disk can only be copied on its own node.
        """
        owner = self.cluster.vms.get(source.vmid) if source.content == "images" else None
        if owner is None or owner.vmid == self.vmid or self.job is None:
            return None
        if owner.node != self.node:
            raise PveError(f"owner VM {owner.vmid} not on local node")
        lock = yield from self.cluster.lock_vm(
            self.node, owner.vmid, IMPORT_LOCK_WAIT, shared=not owner.running
        )
        return lock

    def _source(self, wanted: str) -> Volume:
        if wanted.startswith("/"):
            for volume in self.cluster.volumes.all():
                storage = self.cluster.storages[volume.storage]
                here = volume.node in ("", self.node)
                if here and path_of(storage, volume.name) == wanted:
                    return volume
            raise PveError(f"can't find file '{wanted}'")
        found = self.cluster.volume(wanted, self.node)
        if found is None:
            name = parse_volid(wanted)
            storage = self.cluster.storage(name.storage)
            raise PveError(f"failed to stat '{path_of(storage, name.name)}'")
        return found

    def _existing(self, drive: Drive) -> None:
        name = parse_volid(drive.file)
        if "/" not in name.name and kind(self.cluster.storage(name.storage)).files:
            raise PveError(f"unable to parse directory volume name '{name.name}'")
        volume = self.cluster.volume(drive.file, self.node)
        if volume is None:
            raise PveError(f"volume '{drive.file}' does not exist")
        drive.options["size"] = disks.print_size(volume.size)

    def _use(self, drive: Drive, volume: Volume, size: int = 0) -> None:
        """Name a volume; of an empty one with the size that was asked for."""
        self.made.append(volume)
        drive.file = volume.volid
        drive.options["size"] = disks.print_size(size or volume.size)
