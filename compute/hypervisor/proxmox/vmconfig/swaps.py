"""A VM's disks and options before a swap, noted in its description, and the new ones. Pure.

The note is written before anything else, and removed last: an agent that finds the VM in between
can restore what the VM had, or remove it, without any other journal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.guest.hardware import Hardware
from compute.hypervisor.proxmox.vmconfig import disks, guest, marks
from compute.hypervisor.proxmox.vmconfig.disks import (
    BOOT,
    CONFIG_DRIVE,
    RESCUE_CDS,
    RESCUE_DISK,
    ROOT_SLOTS,
)

_NOTE = "micronova: before="
#: the last operation whose swap has ended with what is new
_ENDED = "micronova: swapped="
_UNUSED = re.compile(r"unused[0-9]+")
_NETWORK = re.compile(r"net[0-9]+")
_DRIVE = re.compile(r"(?:scsi|virtio|ide|sata)[0-9]+")
#: what Proxmox VE makes a volume of: a storage and a size
_TO_MAKE = re.compile(r"[^:]+:[0-9]+(?:\.[0-9]+)?")
_RESCUES = (RESCUE_DISK, *RESCUE_CDS.values())

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Note:
    """What an operation changes of a VM, as it was before."""

    operation_id: int
    before: Mapping[str, str | None]
    """Option → its value; None: it was not set."""
    volumes: frozenset[str]
    """The volumes that the VM had."""

    @property
    def replaced(self) -> frozenset[str]:
        """The volumes of the disks that it changes."""
        values = (value for name, value in self.before.items() if _DRIVE.fullmatch(name))
        return frozenset(volume(value) for value in values if value and not _is_cd(value))

    @property
    def rescues(self) -> bool:
        """Whether it is a rescue's: no root disk is in it. A CD may be where one would be."""
        roots = [slot for slot in ROOT_SLOTS.values() if slot in self.before]
        return all(slot in _RESCUES and not self._had_disk(slot) for slot in roots)

    def _had_disk(self, slot: str) -> bool:
        value = self.before[slot]
        return value is not None and not _is_cd(value)

    @property
    def config_drive(self) -> str:
        """The volume of the config drive; empty: there was none."""
        return volume(self.before.get(CONFIG_DRIVE) or "")


def volume(value: str) -> str:
    """Return the volume in a drive's value."""
    return value.split(",", 1)[0]


def note(operation_id: int, config: Config, names: Mapping[str, Any]) -> Note:
    """Return the note of these options; ``names`` has them as keys."""
    before = {name: str(config[name]) if name in config else None for name in sorted(names)}
    drives = (str(value) for name, value in config.items() if _is_disk(name))
    return Note(operation_id, before, frozenset(volume(value) for value in drives))


def note_of(config: Config) -> Note | None:
    """Return the note in a description; None if there is none that can be read."""
    text = next((line for line in marks.lines(config) if line.startswith(_NOTE)), None)
    if text is None:
        return None
    try:
        found = json.loads(text.removeprefix(_NOTE))
        return Note(int(found["operation"]), dict(found["had"]), frozenset(found["volumes"]))
    except (ValueError, KeyError, TypeError):
        return None


def with_note(config: Config, noted: Note) -> str:
    """Return the description with the note."""
    content = {
        "operation": noted.operation_id,
        "had": dict(noted.before),
        "volumes": sorted(noted.volumes),
    }
    return f"{without_note(config)}\n{_NOTE}{json.dumps(content, separators=(',', ':'))}"


def without_note(config: Config) -> str:
    """Return the description without any note."""
    return _without(config, _NOTE)


def with_end(config: Config) -> str:
    """Return the description that says which operation's swap has ended, instead of its note."""
    found = note_of(config)
    ended = [] if found is None else [f"{_ENDED}{found.operation_id}"]
    return "\n".join([_without(config, _NOTE, _ENDED), *ended]).strip()


def ended(config: Config) -> int | None:
    """Return the last operation whose swap has ended with what is new; None: there was none."""
    text = next((line for line in marks.lines(config) if line.startswith(_ENDED)), "")
    number = text.removeprefix(_ENDED)
    return int(number) if number.isascii() and number.isdigit() else None


def _without(config: Config, *marked: str) -> str:
    kept = str(config.get("description", "")).splitlines()
    return "\n".join(line for line in kept if not line.strip().startswith(marked)).rstrip()


def missing(config: Config, noted: Note, wanted: Mapping[str, str | None]) -> dict[str, str]:
    """Return the parameters that give the VM what is wanted, {option: value, None: not set}.

    A disk to be made exists once the slot's volume isn't a former one of the VM; a volume with a
    name, once the VM names it.
    """
    return _parameters(config, wanted, lambda name, value: _has_new(config, noted, name, value))


def given_back(config: Config, noted: Note) -> dict[str, str]:
    """Return the parameters that give the VM back what it had; empty: nothing is missing."""
    return _parameters(config, noted.before, lambda name, value: _has(config, name, value))


def surplus(config: Config, volumes: frozenset[str]) -> list[str]:
    """Return the unused disks with these volumes."""
    return sorted(
        name
        for name, value in config.items()
        if _UNUSED.fullmatch(name) and volume(str(value)) in volumes
    )


def made_since(config: Config, noted: Note) -> frozenset[str]:
    """Return the volumes of unused disks that the VM didn't have before."""
    unused = (volume(str(value)) for name, value in config.items() if _UNUSED.fullmatch(name))
    return frozenset(unused) - noted.volumes


def hardware(
    config: Config, new: Hardware, old: Hardware, vcpus: int, cpu_type: str
) -> dict[str, str | None]:
    """Return the options that another image changes: {option: value; None: not set}.

    Options that both images decide alike are left out, as an operator may have changed them. So
    are firmware and TPM: they never change during a server's life.
    """
    wanted, before = guest.options(new, cpu_type), guest.options(old, cpu_type)
    changes: dict[str, str | None] = {
        name: None if name not in wanted else str(wanted[name])
        for name in sorted(wanted.keys() | before.keys())
        if wanted.get(name) != before.get(name)
    }
    cards = guest.network(new, vcpus), guest.network(old, vcpus)
    if cards[0] != cards[1]:
        changes |= {
            name: _card(str(value), *cards[0])
            for name, value in sorted(config.items())
            if _NETWORK.fullmatch(name)
        }
    return changes


def _card(value: str, model: str, queues: int) -> str:
    """Return a network interface with another model, and the same MAC."""
    first, *others = value.split(",")
    parts = [f"{model}={first.partition('=')[2]}"]
    parts += [part for part in others if not part.startswith("queues=")]
    return ",".join([*parts, f"queues={queues}"] if queues else parts)


def _parameters(config: Config, wanted: Mapping[str, str | None], has: Any) -> dict[str, str]:
    values = {
        name: value
        for name, value in sorted(wanted.items())
        if value is not None and not has(name, value)
    }
    gone = [name for name, value in sorted(wanted.items()) if value is None and name in config]
    return values | ({"delete": ",".join(gone)} if gone else {})


def _has_new(config: Config, noted: Note, name: str, value: str) -> bool:
    if _is_disk(name) and not _is_cd(value) and _TO_MAKE.fullmatch(volume(value)):
        there = volume(str(config.get(name, "")))
        return bool(there) and there not in noted.volumes
    return _has(config, name, value)


def _has(config: Config, name: str, value: str) -> bool:
    there = config.get(name)
    if there is None:
        return False
    if _is_disk(name):
        return volume(str(there)) == volume(value)
    if name == BOOT:
        # A CD that is inserted is appended.
        wanted = _order(value)
        return _order(str(there))[: len(wanted)] == wanted
    return set(str(there).split(",")) == set(value.split(","))


def rescued_from(config: Config) -> str | None:
    """Return the drive of a rescue that it boots from, or None."""
    first = str(config.get(BOOT, "")).removeprefix("order=").split(";")[0]
    return first if first in _RESCUES else None


def _order(value: str) -> list[str]:
    devices = value.removeprefix("order=").split(";")
    return [one for one in devices if one != CONFIG_DRIVE]


def _is_disk(name: str) -> bool:
    return _DRIVE.fullmatch(name) is not None or _UNUSED.fullmatch(name) is not None


def is_disk_there(config: Config, name: str) -> bool:
    """Return whether a drive is there, and is no CD."""
    return name in config and not _is_cd(str(config[name]))


def _is_cd(value: str) -> bool:
    return "media=cdrom" in value


def root(config: Config) -> str:
    """Return the value of the root disk; empty: it has none where we look for it."""
    return disks.root(config)
