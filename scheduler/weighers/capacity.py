"""Prefer hosts with more room: by allocation, and on the storage."""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import Weighed, weighing
from scheduler.filters.storage import root_storage
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats


def _shares(resource_class: str) -> Weighed:
    def weighed(columns: HostColumns, request: RequestSpec) -> Floats:
        return columns.free(resource_class) / np.maximum(columns.capacity(resource_class), 1)

    return weighed


def _share(host: Host, resource_class: str) -> float:
    return host.free(resource_class) / max(host.capacity.get(resource_class, 0), 1)


@weighing(_shares("MEMORY_MB"))
def ram(host: Host, request: RequestSpec) -> float:
    """Return free memory as a share of all."""
    return _share(host, "MEMORY_MB")


@weighing(_shares("VCPU"))
def cpu(host: Host, request: RequestSpec) -> float:
    """Return free processors as a share of all."""
    return _share(host, "VCPU")


@weighing(_shares("DISK_GB"))
def disk(host: Host, request: RequestSpec) -> float:
    """Return free disk as a share of all."""
    return _share(host, "DISK_GB")


def _really_free(host: Host) -> float:
    found = root_storage(host)
    return found.available_gib / max(found.total_gib, 1) if found else 0.0


@weighing(lambda columns, request: columns.measure(_really_free))
def storage(host: Host, request: RequestSpec) -> float:
    """Return what is free on the storage for root disks, as a share of all of it."""
    return _really_free(host)
