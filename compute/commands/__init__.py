"""What an agent can do: each command, and the steps that carry it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.messages.commands import (
    BackUpVolume,
    Build,
    CacheImage,
    Command,
    Copy,
    Destroy,
    EndSwap,
    Grow,
    GrowVolume,
    MakeVnet,
    MakeVolume,
    Mark,
    Move,
    Plug,
    PlugVolume,
    Power,
    RemoveBackup,
    RemoveImage,
    RemoveVnet,
    RemoveVolume,
    RetireTemplate,
    RetypeVolume,
    Shape,
    SnapVolume,
    StoreImage,
    Swap,
)
from common.messages.reports import Outcome
from compute.commands import (
    build,
    cache,
    copy,
    destroy,
    mark,
    move,
    plug,
    power,
    retire,
    shape,
    store_image,
    swap,
    vnets,
    volumes,
)
from compute.commands.job import Job
from compute.hypervisor.port import Hypervisor

#: command → what carries it out; the last argument is in seconds: how long a guest has to stop
COMMANDS: Mapping[type[Command], Callable[[Job, Hypervisor, Any, int], Outcome]] = {
    BackUpVolume: lambda job, at, one, _: volumes.back_up(job, at.volume(job), one),
    Build: lambda job, at, one, _: build.build(job, at.machine(job), one, at.group_writer(one)),
    CacheImage: lambda job, at, one, _: cache.cache(job, at.machine(job), one),
    Copy: lambda job, at, one, _: copy.copy(job, at.disk_copy(job, one), one),
    Destroy: lambda job, at, one, seconds: destroy.destroy(job, at.machine(job), one, seconds),
    EndSwap: lambda job, at, one, _: swap.end_swap(job, at.machine(job), one),
    Grow: lambda job, at, one, _: shape.grow(job, at.machine(job), one),
    GrowVolume: lambda job, at, one, _: volumes.grow(job, at.volume(job), one),
    MakeVnet: lambda job, at, one, _: vnets.make(job, at, one),
    MakeVolume: lambda job, at, one, _: volumes.make(job, at.volume(job), one),
    Mark: lambda job, at, one, _: mark.mark(job, at.owner_mark(job), one),
    Move: lambda job, at, one, _: move.move(job, at.machine(job), one),
    Plug: lambda job, at, one, _: plug.plug(job, at.machine(job), one),
    PlugVolume: lambda job, at, one, _: volumes.plug(job, at.machine(job), one),
    Power: lambda job, at, one, seconds: power.power(job, at.machine(job), one, seconds),
    RemoveBackup: lambda job, at, one, _: volumes.remove_backup(job, at.volume(job), one),
    RemoveImage: lambda job, at, one, _: store_image.remove(job, at, one),
    RemoveVnet: lambda job, at, one, _: vnets.remove(job, at, one),
    RemoveVolume: lambda job, at, one, _: volumes.remove(job, at.volume(job), one),
    RetireTemplate: lambda job, at, one, _: retire.retire(job, at, one),
    RetypeVolume: lambda job, at, one, _: volumes.retype(job, at.volume(job), one),
    Shape: lambda job, at, one, seconds: shape.shape(job, at.machine(job), one, seconds),
    SnapVolume: lambda job, at, one, _: volumes.snap(job, at.volume(job), one),
    StoreImage: lambda job, at, one, _: store_image.store(job, at, one),
    Swap: lambda job, at, one, seconds: swap.swap(job, at.machine(job), one, seconds),
}

#: commands that ask for a state of a server's VM: seen there, they are done, by whatever cause
OF_STATE: tuple[type[Command], ...] = (EndSwap, Move, Plug, PlugVolume, Power, Shape)
