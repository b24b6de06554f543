"""The scheduler's own filters and weighers, as its entry points name them."""

from __future__ import annotations

from scheduler.filters.aggregates import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_multitenancy_isolation,
)
from scheduler.filters.guest import guest_hardware
from scheduler.filters.ha import ha_rule
from scheduler.filters.hints import different_host, near_host_ip, same_host
from scheduler.filters.image import image_properties, image_reach
from scheduler.filters.network import vlan_reach
from scheduler.filters.placement import availability_zone, forced_host, network_reach, retry
from scheduler.filters.resources import resources
from scheduler.filters.server_groups import (
    server_group_affinity,
    server_group_anti_affinity,
)
from scheduler.filters.service import node_healthy, service_enabled, service_up
from scheduler.filters.storage import disk_way, storage_room
from scheduler.filters.traits import capabilities, traits
from scheduler.filters.volumes import volume_reach
from scheduler.weighers.capacity import cpu, disk, ram, storage
from scheduler.weighers.cluster import cluster_score, cluster_spread
from scheduler.weighers.ha import ha_priority
from scheduler.weighers.history import build_failure, image_cached
from scheduler.weighers.load import load
from scheduler.weighers.server_groups import soft_affinity, soft_anti_affinity

__all__ = [
    "aggregate_image_properties_isolation",
    "aggregate_instance_extra_specs",
    "aggregate_multitenancy_isolation",
    "availability_zone",
    "build_failure",
    "capabilities",
    "cluster_score",
    "cluster_spread",
    "cpu",
    "different_host",
    "disk",
    "disk_way",
    "forced_host",
    "guest_hardware",
    "ha_priority",
    "ha_rule",
    "image_cached",
    "image_properties",
    "image_reach",
    "load",
    "near_host_ip",
    "network_reach",
    "node_healthy",
    "ram",
    "resources",
    "retry",
    "same_host",
    "server_group_affinity",
    "server_group_anti_affinity",
    "service_enabled",
    "service_up",
    "soft_affinity",
    "soft_anti_affinity",
    "storage",
    "storage_room",
    "traits",
    "vlan_reach",
    "volume_reach",
]
