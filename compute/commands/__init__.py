"""What an agent can do: each command, and the steps that carry it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

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

C_co = TypeVar("C_co", covariant=True)
O_co = TypeVar("O_co", covariant=True)


class _Kind(Protocol[C_co, O_co]):
    """The class of a command, which names the class of its outcome."""

    def __call__(self, *args: Any, **values: Any) -> C_co: ...

    def outcome(self) -> type[O_co]: ...


def _by(
    kind: _Kind[C_co, O_co], carry_out: Callable[[Job, Hypervisor, C_co, int], O_co]
) -> tuple[Any, Callable[[Job, Hypervisor, Any, int], Any]]:
    """Return a row of the table, whose outcome is that of its command."""
    return kind, carry_out


#: command → what carries it out; the last argument is in seconds: how long a guest has to stop
COMMANDS: Mapping[type[Command], Callable[[Job, Hypervisor, Any, int], Outcome]] = dict(
    (
        _by(BackUpVolume, lambda job, at, one, _: volumes.back_up(job, at.volume(job), one)),
        _by(
            Build,
            lambda job, at, one, _: build.build(job, at.machine(job), one, at.group_writer(one)),
        ),
        _by(CacheImage, lambda job, at, one, _: cache.cache(job, at.machine(job), one)),
        _by(Copy, lambda job, at, one, _: copy.copy(job, at.disk_copy(job, one), one)),
        _by(
            Destroy,
            lambda job, at, one, stop: destroy.destroy(job, at.machine(job), one, stop),
        ),
        _by(EndSwap, lambda job, at, one, _: swap.end_swap(job, at.machine(job), one)),
        _by(Grow, lambda job, at, one, _: shape.grow(job, at.machine(job), one)),
        _by(GrowVolume, lambda job, at, one, _: volumes.grow(job, at.volume(job), one)),
        _by(MakeVnet, lambda job, at, one, _: vnets.make(job, at, one)),
        _by(MakeVolume, lambda job, at, one, _: volumes.make(job, at.volume(job), one)),
        _by(Mark, lambda job, at, one, _: mark.mark(job, at.owner_mark(job), one)),
        _by(Move, lambda job, at, one, _: move.move(job, at.machine(job), one)),
        _by(Plug, lambda job, at, one, _: plug.plug(job, at.machine(job), one)),
        _by(PlugVolume, lambda job, at, one, _: volumes.plug(job, at.machine(job), one)),
        _by(Power, lambda job, at, one, seconds: power.power(job, at.machine(job), one, seconds)),
        _by(RemoveBackup, lambda job, at, one, _: volumes.remove_backup(job, at.volume(job), one)),
        _by(RemoveImage, lambda job, at, one, _: store_image.remove(job, at, one)),
        _by(RemoveVnet, lambda job, at, one, _: vnets.remove(job, at, one)),
        _by(RemoveVolume, lambda job, at, one, _: volumes.remove(job, at.volume(job), one)),
        _by(RetireTemplate, lambda job, at, one, _: retire.retire(job, at, one)),
        _by(RetypeVolume, lambda job, at, one, _: volumes.retype(job, at.volume(job), one)),
        _by(Shape, lambda job, at, one, seconds: shape.shape(job, at.machine(job), one, seconds)),
        _by(SnapVolume, lambda job, at, one, _: volumes.snap(job, at.volume(job), one)),
        _by(StoreImage, lambda job, at, one, _: store_image.store(job, at, one)),
        _by(Swap, lambda job, at, one, seconds: swap.swap(job, at.machine(job), one, seconds)),
    )
)

#: commands that ask for a state of a server's VM: seen there, they are done, by whatever cause
OF_STATE: tuple[type[Command], ...] = (EndSwap, Move, Plug, PlugVolume, Power, Shape)
