"""Bounds of what a guest's disks and interfaces carry: a flavor's ``quota:*``. Pure.

Names and units are Nova's: https://docs.openstack.org/nova/latest/admin/resource-limits.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.guest.asked import CannotError

#: what bounds disks, in bytes or requests a second
DISK_LIMITS = tuple(
    f"disk_{way}_{unit}_sec" for way in ("read", "write", "total") for unit in ("bytes", "iops")
)
#: what bounds interfaces, in KiB a second; of bursts in KiB
VIF_LIMITS = tuple(
    f"vif_{way}_{what}" for way in ("inbound", "outbound") for what in ("average", "peak", "burst")
)
_PREFIX = "quota:"
_MOST = 1 << 53


@dataclass(frozen=True)
class Throttle:
    """Bounds of one guest; empty or 0: none."""

    disks: tuple[tuple[str, int], ...] = ()
    """(name of ``DISK_LIMITS``, value) of each of its own disks."""
    vif_kib: int = 0
    """KiB a second of each interface, in each direction."""


def read(extra_specs: Mapping[str, str]) -> Throttle:
    """Return a flavor's bounds. Raises CannotError for what is no number or contradicts."""
    disks = {name: _number(extra_specs, name) for name in DISK_LIMITS}
    found = tuple((name, value) for name, value in disks.items() if value)
    for unit in ("bytes", "iops"):
        total = f"disk_total_{unit}_sec"
        parts = [f"disk_{way}_{unit}_sec" for way in ("read", "write")]
        both = next((part for part in parts if disks[part] and disks[total]), None)
        if both is not None:
            raise CannotError(
                f"{_PREFIX}{total} and {_PREFIX}{both} can't be had together: one bounds "
                "reads and writes together, the other each"
            )
    return Throttle(found, _rate({name: _number(extra_specs, name) for name in VIF_LIMITS}))


def _rate(limits: Mapping[str, int]) -> int:
    """Return the bound of interfaces. Peaks and bursts are preferences: the hypervisor has its
    own burst."""
    averages = {}
    for way in ("inbound", "outbound"):
        averages[way] = limits[f"vif_{way}_average"]
        beside = next((one for one in ("peak", "burst") if limits[f"vif_{way}_{one}"]), None)
        if beside is not None and not averages[way]:
            raise CannotError(
                f"{_PREFIX}vif_{way}_{beside} needs {_PREFIX}vif_{way}_average beside it"
            )
    inbound, outbound = averages["inbound"], averages["outbound"]
    if inbound and outbound and inbound != outbound:
        raise CannotError(
            f"{_PREFIX}vif_inbound_average={inbound} and {_PREFIX}vif_outbound_average={outbound} "
            "can't be had together: interfaces have one bound for both directions"
        )
    return inbound or outbound


def _number(extra_specs: Mapping[str, str], name: str) -> int:
    text = str(extra_specs.get(f"{_PREFIX}{name}", "")).strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > _MOST:
        raise CannotError(f"{_PREFIX}{name}={text} is no number from 0 to {_MOST}")
    return int(text)
