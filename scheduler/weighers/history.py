"""Prefer hosts on which builds did not fail of late."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.hosts import Host


def build_failure(host: Host, request: Requested) -> float:
    """Minus the failures, which decay."""
    return -host.failures


def image_cached(host: Host, request: Requested) -> float:
    """1 where the image is ready to clone, else 0."""
    return 1.0 if request.image_id in host.facts.cached_images else 0.0
