"""The scheduler's own filters and weighers, as its entry points name them."""

from __future__ import annotations

from scheduler.filters.image import image_properties, image_reach
from scheduler.filters.placement import availability_zone, forced_host, network_reach, retry
from scheduler.filters.resources import resources
from scheduler.filters.service import node_healthy, service_enabled, service_up
from scheduler.filters.storage import storage_room
from scheduler.filters.traits import capabilities, traits
from scheduler.weighers.capacity import cpu, ram
from scheduler.weighers.history import build_failure, image_cached

__all__ = [
    "availability_zone",
    "build_failure",
    "capabilities",
    "cpu",
    "forced_host",
    "image_cached",
    "image_properties",
    "image_reach",
    "network_reach",
    "node_healthy",
    "ram",
    "resources",
    "retry",
    "service_enabled",
    "service_up",
    "storage_room",
    "traits",
]
