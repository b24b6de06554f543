"""Whether a VM can be moved to a node, by its preconditions and its configuration. Pure.

Proxmox VE names most causes only in the log of a task that has begun, so they are looked for
before anything is touched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.messages.commands import Move
from compute.hypervisor.proxmox.vmconfig import ejected, storage_types
from compute.hypervisor.proxmox.vmconfig.disks import CONFIG_DRIVE
from compute.hypervisor.proxmox.vmconfig.disks import owner as owner_of

#: a clone's volume begins with its base
_BASE = re.compile(r"[:/](base-[0-9]+-[^/]+)/")


@dataclass(frozen=True)
class Situation:
    """What is known of a VM and its move."""

    vmid: int
    found: Mapping[str, Any]
    """The answer of ``GET …/migrate``."""
    config: Mapping[str, Any]
    storages: Mapping[str, str]
    """The types of its node's storages."""
    drive: str | None
    """The config drive's volume, if it will be taken out before."""
    cds: frozenset[str] = frozenset()
    """Other CDs that will be taken out before, and inserted on the target."""


def drive(config: Mapping[str, Any], names: Collection[str]) -> str | None:
    """Return the volume of the config drive with one of these file names, if it is inserted."""
    volid = str(config.get(CONFIG_DRIVE, "")).split(",", 1)[0]
    return volid if volid.partition(":iso/")[2] in names else None


def refusal(now: Situation, move: Move) -> str | None:
    """Return why the VM can't be moved so, or None."""
    return next(_refusals(now, move), None)


def copied(now: Situation) -> list[str]:
    """Return the volumes that are on storages of the node's own, but for CDs taken out before."""
    return [str(one["volid"]) for one in _that_move(now)]


def _that_move(now: Situation) -> list[Mapping[str, Any]]:
    out = {now.drive, *now.cds}
    return [one for one in now.found.get("local_disks") or () if one["volid"] not in out]


def _refusals(now: Situation, move: Move) -> Iterator[str]:
    running = bool(now.found.get("running"))
    if move.live and not running:
        yield "It does not run: it can't be moved live."
    if not move.live and running:
        yield "It runs: it can only be moved live."
    yield from _disks(now, move)
    yield from _devices(now, move)
    yield from _target(now, move)


def _disks(now: Situation, move: Move) -> Iterator[str]:
    disks = _that_move(now)
    for one in disks:
        yield from _disk(now, move, one)
    if disks and move.copy_disks is False:
        yield f"{disks[0]['volid']} is not on shared storage, and no copy was allowed."
    if not disks and move.copy_disks:
        yield "Its disks are not on local storage: nothing can be copied."
    if disks and move.live and "parent" in now.config:
        yield "It has snapshots: its local disks can't be copied while it runs."
    if "parent" in now.config:
        kinds = {_kind(now, str(one["volid"])) for one in disks}
        for kind in sorted(kinds):
            if kind and not storage_types.of(kind).moves_snapshots:
                yield f"It has snapshots, and those on a storage of type {kind} can't be copied."


def _kind(now: Situation, volid: str) -> str:
    return now.storages.get(volid.partition(":")[0], "")


def _disk(now: Situation, move: Move, disk: Mapping[str, Any]) -> Iterator[str]:
    volid = str(disk["volid"])
    if ejected.is_cd(disk):
        yield (
            f"{volid} is a CD image on a storage of its node's own, and node {move.target_node} "
            "has no such file of the same size: copy it there, or eject it."
        )
        return
    base, owner = _BASE.search(volid), owner_of(volid)
    if base is not None:
        yield f"{volid} is a linked clone of {base[1]} on a storage of its node's own."
    if owner not in (None, now.vmid):
        yield f"{volid} belongs to VM {owner}."
    kind = _kind(now, volid)
    able = storage_types.of(kind)
    if kind and not (able.copied and (move.live or able.copied_off)):
        yield f"{volid} is on a storage of type {kind}, which can't be copied to another node."


def _devices(now: Situation, move: Move) -> Iterator[str]:
    local = _names(now.found.get("local_resources"))
    if local:
        yield f"It uses devices of its node: {', '.join(local)}."
    mapped = _names(now.found.get("mapped-resources"))
    if mapped and move.live:
        yield f"It uses mapped devices and can't be moved live: {', '.join(mapped)}."


def _target(now: Situation, move: Move) -> Iterator[str]:
    against = (now.found.get("not_allowed_nodes") or {}).get(move.target_node) or {}
    local = {volid.partition(":")[0] for volid in copied(now)} if move.target_storage else set()
    ours = {now.drive.partition(":")[0]} if now.drive else set()
    lacks = [
        name
        for name in against.get("unavailable_storages") or ()
        if name not in local and (name not in ours or _is_used(now, name))
    ]
    if lacks:
        yield f"Node {move.target_node} has not got its storage {', '.join(lacks)}."
    for key in ("unavailable-resources", "blocking-ha-resources"):
        if against.get(key):
            yield f"Node {move.target_node} can't have it ({key}): {against[key]}."


def _is_used(now: Situation, storage: str) -> bool:
    """Return whether another drive than the config drive is on a storage."""
    return any(
        str(value).startswith(f"{storage}:")
        for key, value in now.config.items()
        if key != CONFIG_DRIVE
    )


def _names(found: Sequence[Any] | None) -> list[str]:
    return [str(one) for one in found or ()]
