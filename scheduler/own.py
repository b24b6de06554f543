"""The filters and weighers that come with the scheduler, by the names of their entry points.

They are found without those too: a source tree may be newer than its installed metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.filters import aggregates, image, placement, resources, server_groups, service
from scheduler.filters import storage as storages
from scheduler.filters import traits as named
from scheduler.weighers import capacity, history
from scheduler.weighers import load as observed
from scheduler.weighers import server_groups as soft


def _by_name(*functions: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    return {function.__name__: function for function in functions}


FILTERS = _by_name(
    aggregates.aggregate_image_properties_isolation,
    aggregates.aggregate_instance_extra_specs,
    aggregates.aggregate_multitenancy_isolation,
    image.image_properties,
    image.image_reach,
    placement.availability_zone,
    placement.forced_host,
    placement.network_reach,
    placement.retry,
    resources.resources,
    server_groups.server_group_affinity,
    server_groups.server_group_anti_affinity,
    service.node_healthy,
    service.service_enabled,
    service.service_up,
    storages.disk_way,
    storages.storage_room,
    named.capabilities,
    named.traits,
)
WEIGHERS = _by_name(
    capacity.cpu,
    capacity.disk,
    capacity.ram,
    capacity.storage,
    history.build_failure,
    history.image_cached,
    observed.load,
    soft.soft_affinity,
    soft.soft_anti_affinity,
)
