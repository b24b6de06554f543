"""Prefer hosts without recent failed builds, and hosts with the image already present."""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import absolute, weighing
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats

#: the share of trust in a host that remains after one more failure
_LEFT = 0.1
#: a smaller remainder of a failure counts as none
_FORGOTTEN = 0.001


def _distrust(failures: Floats) -> Floats:
    found: Floats = np.where(failures < _FORGOTTEN, 0.0, np.power(_LEFT, failures) - 1.0)
    return found


def _failed(columns: HostColumns, request: RequestSpec) -> Floats | None:
    return _distrust(columns.failures) if (columns.failures >= _FORGOTTEN).any() else None


@absolute
@weighing(_failed)
def build_failure(host: Host, request: RequestSpec) -> float:
    """Return 0 down to -1 for failures, which decay: one just now is -0.9."""
    return float(_distrust(np.array([host.failures]))[0])


def _cached(host: Host) -> tuple[str, ...]:
    return host.facts.cached_images


def _ready(columns: HostColumns, request: RequestSpec) -> Floats | None:
    if request.image_id is None:
        return None
    return columns.having(_cached, request.image_id).astype(np.float64)


@weighing(_ready)
def image_cached(host: Host, request: RequestSpec) -> float:
    """Return 1 if the image is ready to clone, else 0."""
    return 1.0 if request.image_id in _cached(host) else 0.0
