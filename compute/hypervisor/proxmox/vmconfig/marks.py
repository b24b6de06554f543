"""The ownership fence: who owns a VM, by the marks in its configuration. Pure.

A server's VM has its UUID twice: in the description and as SMBIOS UUID. The description also has
the IDs of the cloud that made the VM, of the server's project and user, and of each port with its
addresses, which nothing else in a configuration shows. A clone gets a new SMBIOS UUID, so until it
is configured another line of the description says that it is being built. An adopted VM's SMBIOS
UUID is not changed; if that isn't the server's UUID, a line names it, so that a copy of the VM,
which gets another one, can be recognised. Nothing else is ever changed or destroyed.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from common import ids
from common.messages import commands
from common.messages.commands import Address, BackUpVolume, Build, Command, MakeVolume, Nic
from common.messages.facts import MarkedAddress, MarkedPort, OwnerMark
from common.resources.states import ResourceType

SERVER = "micronova: server="
TEMPLATE = "micronova: template="
VOLUME = "micronova: volume="
#: the cloud that made it: several may share a cluster, and make templates of the same images
CLOUD = "micronova: cloud="
#: the project and the user for whom it was made
PROJECT = "micronova: project="
USER = "micronova: user="
#: how far the cloud's record was when it was made, and the VMID that it was made with
EPOCH = "micronova: epoch="
#: a port, the MAC address of its interface, its network, and its addresses
PORT = "micronova: port="
#: the volume that a snapshot, which is a copy, was taken of
SNAPSHOT_OF = "micronova: snapshot of="
BUILDING = "micronova: building"
#: its build was finished but for the start, when the record was found to have lost it
UNSTARTED = "micronova: unstarted"
#: what the notes of an archive begin with
BACKUP = "micronova: backup="
ADOPTED = "micronova: adopted smbios="
_NO_SMBIOS = "none"
_OURS = "micronova: "
#: what a mark begins with, by what the VM is
OWNED = (SERVER, TEMPLATE, VOLUME)

_NAMED = (
    (SERVER, ResourceType.SERVER),
    (VOLUME, ResourceType.VOLUME),
    (TEMPLATE, ResourceType.IMAGE),
)
_NIC = re.compile(r"net[0-9]+")
_DIGITS = 19
_EPOCH = re.compile(rf"{EPOCH}([0-9]{{1,18}}) vmid=([0-9]{{1,9}})")
_SMBIOS_UUID = re.compile(r"(?:^|,)uuid=([0-9a-fA-F-]{36})")


class Owner(enum.Enum):
    """Who owns a VM."""

    OURS = "ours"
    FOREIGN = "foreign"
    UNMARKED = "unmarked"
    """A half-created VM without marks yet: only its task proves the owner."""


@dataclass(frozen=True)
class Mark:
    """What the VM must have to be ours."""

    line: str
    smbios_uuid: str | None
    also: tuple[str, ...] = ()
    """Further lines that the description must have."""
    about: tuple[str, ...] = ()
    """Lines that are written with it, and prove nothing."""

    def description(self, *more: str) -> str:
        """Return the text for the VM's description."""
        return "\n".join((*self.lines, *more))

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines that are written."""
        return (self.line, *self.also, *self.about)


def server_mark(server_uuid: str, cloud: str, about: Iterable[str] = ()) -> Mark:
    """Return the mark of a server's VM; ``about``: see ``owner_lines`` and ``port_line``."""
    return Mark(f"{SERVER}{server_uuid}", server_uuid, _of_cloud(cloud), tuple(about))


def of_command(command: Command) -> Mark:
    """Return the mark of the server's VM that a command is about, and what is written with it."""
    about: tuple[str, ...] = ()
    if isinstance(command, Build | commands.Mark):
        owner = owner_lines(command.project_id, command.user_id)
        about = (*owner, *epoch_lines(command), *map(port_line, command.nics))
    return server_mark(command.resource_id, command.cloud, about)


def is_half_marked(config: Mapping[str, Any], mark: Mark) -> bool:
    """Return whether at least one of both marks of a server's VM is there: it is probably ours."""
    wanted = mark.smbios_uuid
    same = wanted is not None and smbios_uuid(config) == wanted.lower()
    return same or mark.line in lines(config)


def template_mark(image_id: str, cloud: str, about: Iterable[str] = ()) -> Mark:
    """Return the mark of an image's template in one cloud: other clouds use the same image id.

    ``about``: see ``epoch_lines``.
    """
    return Mark(f"{TEMPLATE}{image_id}", None, _of_cloud(cloud), tuple(about))


def volume_mark(volume_id: str, cloud: str, about: Iterable[str] = ()) -> Mark:
    """Return the mark of a volume's holder; ``about``: see ``owner_lines``."""
    return Mark(f"{VOLUME}{volume_id}", volume_id, _of_cloud(cloud), tuple(about))


def _of_cloud(cloud: str) -> tuple[str, ...]:
    return (cloud_line(cloud),) if cloud else ()


def owner_lines(project_id: str, user_id: str) -> tuple[str, ...]:
    """Return the lines that name the project and the user for whom a VM is made."""
    pairs = ((PROJECT, project_id), (USER, user_id))
    return tuple(f"{name}{value}" for name, value in pairs if value)


def holder_lines(command: MakeVolume) -> tuple[str, ...]:
    """Return the lines that are written with the mark of a holder, and prove nothing."""
    of = (f"{SNAPSHOT_OF}{command.snapshot_of}",) if command.snapshot_of else ()
    return (*owner_lines(command.project_id, command.user_id), *of, *epoch_lines(command))


def epoch_lines(command: Command, vmid: int | None = None) -> tuple[str, ...]:
    """Return the line with a command's epoch and the VMID of what it makes (its place's)."""
    made = command.placed.vmid if vmid is None else vmid
    return (f"{EPOCH}{command.epoch} vmid={made}",) if command.epoch else ()


def epoch_of(config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the epoch and the VMID that a description names; None: it names none."""
    found = (_EPOCH.fullmatch(line) for line in lines(config))
    return next(((int(one[1]), int(one[2])) for one in found if one), None)


def port_line(nic: Nic) -> str:
    """Return the line of a port: its ID, its MAC address, its network, and its addresses.

    ``<port> <MAC> network=<id> owner=<project> <address>/<prefix> gateway=<address> dns=<…>``:
    what follows an address is its subnet's. So a project's network can be made again of it.
    """
    words = [f"{PORT}{nic.port_id}", nic.mac.lower()]
    if nic.network_owner:
        words += [f"network={nic.network_id}", f"owner={nic.network_owner}"]
    second = () if nic.second is None else (nic.second,)
    first = () if nic.ip is None else (Address(nic.ip, nic.cidr or "", nic.gateway, nic.dns),)
    for one in (*first, *second, *nic.more):
        words += _address_words(one)
    return " ".join(words)


def _address_words(one: Address) -> Iterator[str]:
    length = one.cidr.partition("/")[2]
    yield f"{one.ip}/{length}" if length else one.ip
    if one.gateway:
        yield f"gateway={one.gateway}"
    if one.dns:
        yield f"dns={','.join(one.dns)}"


def ports_of(config: Mapping[str, Any]) -> dict[str, MarkedPort]:
    """Return all ports that a description names, by MAC address."""
    found = (_port(line.removeprefix(PORT)) for line in lines(config) if line.startswith(PORT))
    return {one.mac: one for one in found if one is not None}


def _port(text: str) -> MarkedPort | None:
    """Return the port of a line, without what somebody edited so that it is none."""
    words = text.split()
    if len(words) < 2:
        return None
    of_port: dict[str, str] = {}
    addresses: list[MarkedAddress] = []
    for word in words[2:]:
        name, is_named, value = word.partition("=")
        if not is_named:
            addresses += _marked_address(word)
        elif name == "gateway" and addresses and _is_address(value):
            addresses[-1] = replace(addresses[-1], gateway=value)
        elif name == "dns" and addresses:
            servers = tuple(one for one in value.split(",") if _is_address(one))
            addresses[-1] = replace(addresses[-1], dns=servers)
        else:
            of_port[name] = value
    network, owner = of_port.get("network", ""), of_port.get("owner", "")
    if not ids.is_uuid(network) or not ids.is_identity(owner):
        network = owner = ""
    return MarkedPort(words[0], words[1].lower(), network, owner, tuple(addresses))


def _marked_address(word: str) -> Iterator[MarkedAddress]:
    ip, _, length = word.partition("/")
    if not _is_address(ip):
        return
    try:
        yield MarkedAddress(ip, str(ipaddress.ip_network(word, strict=False)) if length else None)
    except ValueError:
        yield MarkedAddress(ip)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def with_port(config: Mapping[str, Any], nic: Nic) -> str:
    """Return the description with a port's line, without those of interfaces that are gone."""
    there = "\n".join(str(value) for key, value in config.items() if _NIC.fullmatch(key)).lower()
    kept = [
        line
        for line in str(config.get("description", "")).splitlines()
        if not line.strip().startswith(PORT) or _mac(line) in there
    ]
    return "\n".join([*(line for line in kept if _mac(line) != nic.mac.lower()), port_line(nic)])


def _mac(line: str) -> str:
    """Return the MAC address in a port's line; of others what no configuration has."""
    words = line.strip().removeprefix(PORT).split()
    return words[1].lower() if line.strip().startswith(PORT) and len(words) > 1 else "-"


@dataclass(frozen=True)
class BackupMark:
    """What the notes of an archive say."""

    backup_id: str
    cloud: str
    project: str = ""
    user: str = ""
    volume: str = ""
    size: int = 0
    """The volume's, in GiB."""
    epoch: int = 0


def backup_notes(command: BackUpVolume) -> str:
    """Return the notes of a backup's archive, in one line: more of them aren't listed."""
    says = {
        "cloud": command.cloud,
        "project": command.project_id,
        "user": command.user_id,
        "volume": command.resource_id,
        "size": command.size_gib,
        "epoch": command.epoch,
    }
    words = (f"{name}={value}" for name, value in says.items() if value or name == "cloud")
    return " ".join((f"{BACKUP}{command.backup_id}", *words))


def backup_of(notes: str) -> BackupMark | None:
    """Return what the notes of a backup's archive say; None: they name none."""
    first, *rest = notes.split("\n", 1)[0].removeprefix(BACKUP).split() or [""]
    if not notes.startswith(BACKUP) or not first:
        return None
    says = dict(word.partition("=")[::2] for word in rest)
    cloud, volume = says.get("cloud", ""), says.get("volume", "")
    project, user = (_identity(says.get(name, "")) for name in ("project", "user"))
    if not (ids.is_uuid(first) and ids.is_uuid(volume)):
        volume = ""
    size, epoch = (_number(says.get(name, "")) for name in ("size", "epoch"))
    return BackupMark(first, cloud, project, user, volume, size, epoch)


def _identity(text: str) -> str:
    """Return the ID of a project or a user; empty of what somebody edited."""
    return text if ids.is_identity(text) else ""


def _number(text: str) -> int:
    """Return a number; 0 of what somebody edited."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0


def cloud_line(cloud: str) -> str:
    """Return the line that names the cloud that made a VM."""
    return f"{CLOUD}{cloud}"


def owner_mark(config: Mapping[str, Any]) -> OwnerMark | None:
    """Return whom the description names; None: nobody, no epoch, or another SMBIOS UUID.

    A clone has the description of its source, and an SMBIOS UUID of its own.
    """
    cloud, made = cloud_of(config), epoch_of(config)
    if cloud is None or made is None:
        return None
    for line in lines(config):
        for start, kind in _NAMED:
            resource_id = line.removeprefix(start)
            if line.startswith(start):
                alike = kind is ResourceType.IMAGE or smbios_uuid(config) == resource_id.lower()
                return OwnerMark(cloud, kind, resource_id, *made) if alike else None
    return None


def is_anothers(config: Mapping[str, Any], mark: Mark) -> bool:
    """Return whether a VM has none of our marks, and all of another resource's."""
    return not is_half_marked(config, mark) and owner_mark(config) is not None


def stranger(config: Mapping[str, Any]) -> str | None:
    """Describe a VM of any micronova that is in the wrong place; None for others."""
    said = lines(config)
    what = next((line for line in said if line.startswith(OWNED)), None)
    if what is None:
        return None
    where = next((line for line in said if line.startswith(CLOUD)), "")
    cloud = f" of cloud {where.removeprefix(CLOUD)}" if where else ""
    return f"it is {what.removeprefix('micronova: ').replace('=', ' ', 1)}{cloud}"


def why_not(config: Mapping[str, Any], mark: Mark) -> str:
    """Return why a VM is not ours."""
    said = lines(config)
    if {mark.line, *mark.also} <= set(said) and mark.smbios_uuid is not None:
        has = smbios_uuid(config)
        return f"its SMBIOS UUID is {has or 'missing'}, its description names {mark.smbios_uuid}"
    return stranger(config) or "it carries no marks of micronova's"


def lines(config: Mapping[str, Any]) -> list[str]:
    """Return the description's lines."""
    return [line.strip() for line in str(config.get("description", "")).splitlines()]


def is_building(config: Mapping[str, Any]) -> bool:
    """Return whether the VM was made but not configured yet."""
    return BUILDING in lines(config)


def is_unstarted(config: Mapping[str, Any]) -> bool:
    """Return whether the VM's build was finished but for the start."""
    return UNSTARTED in lines(config)


def with_unstarted(config: Mapping[str, Any], *, on: bool) -> str:
    """Return the description with, or without, the line that says so."""
    text = str(config.get("description", "")).splitlines()
    others = [line for line in text if line.strip() != UNSTARTED]
    return "\n".join([*others, UNSTARTED] if on else others)


def is_adopted(config: Mapping[str, Any]) -> bool:
    """Return whether the VM existed before it was a server's."""
    return any(line.startswith(ADOPTED) for line in lines(config))


def owner(config: Mapping[str, Any], mark: Mark) -> Owner:
    """Return who owns the VM with this configuration."""
    said = lines(config)
    if config.get("lock") in ("create", "clone") and not any(said):
        return Owner.UNMARKED
    if not {mark.line, *mark.also} <= set(said):
        return Owner.FOREIGN
    if mark.smbios_uuid is None or BUILDING in said:
        return Owner.OURS
    has = smbios_uuid(config)
    adopted = f"{ADOPTED}{has or _NO_SMBIOS}" in said
    return Owner.OURS if adopted or has == mark.smbios_uuid.lower() else Owner.FOREIGN


def smbios_uuid(config: Mapping[str, Any]) -> str | None:
    """Return the VM's SMBIOS UUID in lower case, if its configuration has one."""
    match = _SMBIOS_UUID.search(str(config.get("smbios1", "")))
    return match[1].lower() if match is not None else None


def named(config: Mapping[str, Any]) -> str | None:
    """Return the server that a description names, whether or not the other marks agree."""
    found = (line.removeprefix(SERVER) for line in lines(config) if line.startswith(SERVER))
    return next(found, None)


def cloud_of(config: Mapping[str, Any]) -> str | None:
    """Return the cloud that a description names."""
    found = (line.removeprefix(CLOUD) for line in lines(config) if line.startswith(CLOUD))
    return next(found, None)


def marks_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the description's lines that are marks of any micronova."""
    return tuple(line for line in lines(config) if line.startswith(_OURS))


def is_claimed(config: Mapping[str, Any]) -> bool:
    """Return whether the description has the mark of any micronova."""
    return any(line.startswith(OWNED) for line in lines(config))


def with_mark(config: Mapping[str, Any], mark: Mark) -> str:
    """Return the description of an adopted VM: the old text, then the mark."""
    has = smbios_uuid(config)
    same = mark.smbios_uuid is not None and has == mark.smbios_uuid.lower()
    more = [*mark.lines] if same else [*mark.lines, f"{ADOPTED}{has or _NO_SMBIOS}"]
    before = str(config.get("description", "")).rstrip()
    return "\n".join([*([before] if before else []), *more])


def without_owner(config: Mapping[str, Any]) -> str:
    """Return the description without the lines that name an owner."""
    says = (*OWNED, CLOUD, PROJECT, USER, EPOCH, PORT, SNAPSHOT_OF, BUILDING, UNSTARTED, ADOPTED)
    kept = str(config.get("description", "")).splitlines()
    return "\n".join(line for line in kept if not line.strip().startswith(says)).rstrip()


def without_mark(config: Mapping[str, Any]) -> str:
    """Return the description without any of our lines."""
    kept = (line for line in str(config.get("description", "")).splitlines())
    return "\n".join(line for line in kept if not line.strip().startswith(_OURS)).rstrip()
