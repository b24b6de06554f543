"""Prefer hosts on which builds did not fail of late, and those that have the image ready."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.columnar import weighing, weighing_by
from scheduler.fleet import Fleet
from scheduler.hosts import Host
from scheduler.known import Floats


def _failed(fleet: Fleet, request: Requested) -> Floats | None:
    return -fleet.failures if fleet.failures.any() else None


@weighing(_failed)
def build_failure(host: Host, request: Requested) -> float:
    """Minus the failures, which decay."""
    return -host.failures


def _cached(host: Host) -> tuple[str, ...]:
    return host.facts.cached_images


@weighing_by(_cached)
def image_cached(cached: tuple[str, ...], request: Requested) -> float:
    """1 where the image is ready to clone, else 0."""
    return 1.0 if request.image_id in cached else 0.0
