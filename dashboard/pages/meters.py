"""How much of something is used."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NEARLY_ALL = 90
#: of the whole cloud, as placement counts; and of storages
CLAIMED = "claimed by servers, of what they may get"
STORED = "in use, as Proxmox VE fills them"
#: of one node: title → what is counted
OF_NODE: Mapping[str, str] = {
    "VCPUs": "claimed by servers, of its threads",
    "Memory": "claimed by servers or reserved, of what it has",
    "Disk": "claimed by servers or reserved, of the storage of root disks",
}
_UNITS = ("MiB", "GiB", "TiB")
_STEP = 1024


class Warns(enum.Enum):
    """When a meter is shown as a warning."""

    NEARLY_FULL = enum.auto()  #: little is left
    NOT_FULL = enum.auto()  #: something is missing
    NEVER = enum.auto()  #: more may be used than there is


@dataclass(frozen=True)
class Meter:
    """A part of a whole."""

    title: str
    used: int
    limit: int
    """Negative: none."""
    unit: str = ""
    when: Warns = Warns.NEARLY_FULL
    note: str = ""
    """What else is to be known of it."""
    measure: str = ""
    """What is counted, of what, where others of this title count something else."""

    @property
    def warns(self) -> bool:
        """Whether to show it as a warning."""
        if self.when is Warns.NOT_FULL:
            return self.used < self.limit
        return self.when is Warns.NEARLY_FULL and self.percent >= _NEARLY_ALL

    @property
    def strong(self) -> str:
        """How much is used, with its unit where the whole has another one."""
        number, unit = in_unit(self.used, self.unit)
        plain = self.limit < 0 or not self.used or unit == self._whole[1]
        return number if plain else f"{number} {unit}"

    @property
    def rest(self) -> str:
        """Of how much, with the unit."""
        if self.limit < 0:
            return in_unit(self.used, self.unit)[1]
        return f"of {' '.join(filter(None, self._whole))}"

    @property
    def free(self) -> str:
        """What isn't used, with its unit."""
        return " ".join(filter(None, in_unit(max(0, self.limit - self.used), self.unit)))

    @property
    def _whole(self) -> tuple[str, str]:
        return in_unit(self.limit, self.unit)

    @property
    def percent(self) -> float:
        """The used part, at most all of it."""
        return min(100.0, 100 * self.used / self.limit) if self.limit > 0 else 0.0


def in_unit(amount: int, unit: str) -> tuple[str, str]:
    """Return an amount and its unit: 1024 MiB and more are GiB, 1024 GiB and more are TiB.

    >>> in_unit(12, "GiB"), in_unit(1536, "GiB"), in_unit(2 << 20, "MiB"), in_unit(7, "")
    (('12', 'GiB'), ('1.5', 'TiB'), ('2', 'TiB'), ('7', ''))
    """
    shown = float(amount)
    while unit in _UNITS[:-1] and shown >= _STEP:
        shown, unit = shown / _STEP, _UNITS[_UNITS.index(unit) + 1]
    return f"{shown:.2f}".rstrip("0").rstrip("."), unit


def of_amount(title: str, amount: Mapping[str, Any], unit: str, place: str, measure: str) -> Meter:
    """Return a sum over the cloud; its note says what is free, and the most at one place.

    `place`: what a place is called; `measure`: what is counted.
    """
    free = " ".join(filter(None, in_unit(amount["free"], unit)))
    most = amount["most_free"]
    note = f"{free} free in all"
    if most:
        at = " ".join(filter(None, in_unit(most["free"], unit)))
        note = f"{note}; at most {at} on one {place} ({most['name']})"
    return Meter(title, amount["used"], amount["total"], unit, note=note, measure=measure)


def of_hosts(numbers: Mapping[str, Any]) -> tuple[Meter, ...]:
    """Return VCPUs, memory and disk of a hypervisor, by the titles of `OF_NODE`.

    VCPUs are overcommitted as each agent's `cpu_allocation_ratio` says, which the API doesn't.
    """
    memory = numbers["memory_mb_used"], numbers["memory_mb"]
    disk = numbers["local_gb_used"], numbers["local_gb"]
    return (
        Meter(
            "VCPUs",
            numbers["vcpus_used"],
            numbers["vcpus"],
            when=Warns.NEVER,
            measure=OF_NODE["VCPUs"],
        ),
        Meter("Memory", *memory, "MiB", measure=OF_NODE["Memory"]),
        Meter("Disk", *disk, "GiB", measure=OF_NODE["Disk"]),
    )


def of_pool(pool: Mapping[str, Any]) -> Meter:
    """Return a storage that takes volumes; its name is HOST@STORAGE#STORAGE."""
    facts = pool["capabilities"]
    total, free = int(facts["total_capacity_gb"]), int(facts["free_capacity_gb"])
    kind = facts.get("storage_protocol") or ""
    return Meter(f"{pool['name'].partition('#')[0]} ({kind})", total - free, total, "GiB")
