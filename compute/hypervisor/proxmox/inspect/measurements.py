"""Round-robin data of a VM, a node or a storage, from one read.

The points of Proxmox VE are stamped with the end of their interval. Their seconds differ by
version and timeframe (a minute for a day's since 9.0, half an hour before), and within an answer
where it has points from before an upgrade; they are brought to one resolution here.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from common import clock
from common.messages.measurements import Measured, Period, Values
from common.messages.questions import Measure
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError

Point = Mapping[str, Any]
#: metric → the field of a point, and what one of it is
_Fields = Mapping[str, tuple[str, float]]

#: digits that are sent: a chart shows no more
_DIGITS = 3
_SHARED: _Fields = {
    "cpu": ("cpu", 100.0),
    "network_in": ("netin", 1.0),
    "network_out": ("netout", 1.0),
    "cpu_pressure": ("pressurecpusome", 1.0),
    "memory_pressure": ("pressurememorysome", 1.0),
    "disk_pressure": ("pressureiosome", 1.0),
}
OF_VM: _Fields = MappingProxyType(
    {
        **_SHARED,
        "vcpus": ("maxcpu", 1.0),
        "memory_used": ("mem", 1.0),
        "memory": ("maxmem", 1.0),
        "memory_of_host": ("memhost", 1.0),
        "disk_read": ("diskread", 1.0),
        "disk_written": ("diskwrite", 1.0),
    }
)
OF_NODE: _Fields = MappingProxyType(
    {
        **_SHARED,
        "cpus": ("maxcpu", 1.0),
        "io_wait": ("iowait", 100.0),
        "load": ("loadavg", 1.0),
        "memory_used": ("memused", 1.0),
        "memory": ("memtotal", 1.0),
        "memory_available": ("memavailable", 1.0),
        "swap_used": ("swapused", 1.0),
        "swap": ("swaptotal", 1.0),
        "root_used": ("rootused", 1.0),
        "root": ("roottotal", 1.0),
    }
)
OF_STORAGE: _Fields = MappingProxyType({"used": ("used", 1.0), "total": ("total", 1.0)})


def read(client: Client, wanted: Measure) -> Measured:
    """Return measurements, of a VM since it is the server's. Raises HypervisorError."""
    path, fields = f"nodes/{wanted.node}", OF_NODE
    if wanted.vmid is not None:
        path, fields = f"{path}/qemu/{wanted.vmid}", OF_VM
    elif wanted.storage is not None:
        path, fields = f"{path}/storage/{wanted.storage}", OF_STORAGE
    read_at = clock.utcnow()
    try:
        points = client.get(f"{path}/rrddata", timeframe=wanted.period.value, cf="AVERAGE")
    except ApiError as error:
        if not error.not_recorded:
            raise
        points = ()
    return measured(points, fields, wanted.period, wanted.since, read_at)


def measured(
    points: Iterable[Point],
    fields: _Fields,
    period: Period,
    since: datetime.datetime | None,
    read_at: datetime.datetime,
) -> Measured:
    """Return the period of an answer in its resolution. Pure.

    An interval that began before ``since`` is left out: round-robin data are stored by VMID, and
    outlive their VM.
    """
    stamped = sorted(points, key=lambda point: int(point["time"]))
    stamps = [int(point["time"]) for point in stamped]
    steps = [later - one for one, later in itertools.pairwise(stamps)]
    #: before the first point there is nothing that says how long its interval is
    lengths = [*steps[:1], *steps] if steps else [0] * len(stamps)
    begin = float(stamps[-1] - period.seconds) if stamps else 0.0
    if since is not None:
        begin = max(begin, since.timestamp())
    kept = [
        point
        for point, stamp, length in zip(stamped, stamps, lengths, strict=True)
        if stamp - length >= begin
    ]
    resolution = max(period.resolution_seconds, *lengths, 0)
    groups = [
        list(group)
        for _, group in itertools.groupby(kept, lambda point: -(-int(point["time"]) // resolution))
    ]
    return Measured(
        period,
        resolution,
        read_at,
        tuple(int(group[-1]["time"]) for group in groups),
        {
            name: _means(groups, field, factor)
            for name, (field, factor) in fields.items()
            if any(field in point for point in stamped)
        },
    )


def _means(groups: Sequence[Sequence[Point]], field: str, factor: float) -> Values:
    """Return the mean of what is known of each group, None where nothing is."""
    known = (
        [float(one[field]) for one in group if one.get(field) is not None] for group in groups
    )
    return tuple(
        round(sum(values) / len(values) * factor, _DIGITS) if values else None for values in known
    )
