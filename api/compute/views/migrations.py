"""Views of migrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.compute.links import Links
from common.resources.migrations import IN_PROGRESS, MigrationType
from db.reads.servers.migrations import Migration, Progress

COLLECTION = "os-migrations"


@dataclass(frozen=True)
class Sight:
    """Which attributes of migrations the user may see."""

    version: int
    hosts: bool


def listed(found: Migration, sight: Sight, links: Links) -> dict[str, Any]:
    """Return a migration of any kind."""
    view = _common(found, sight)
    view["instance_uuid"] = found.server_uuid
    view["old_instance_type_id"] = found.old_flavor_number
    view["new_instance_type_id"] = found.new_flavor_number
    if sight.version >= 23:
        view["migration_type"] = found.type
        if found.type == MigrationType.LIVE and found.status in IN_PROGRESS:
            view["links"] = links.item(f"servers/{found.server_uuid}/migrations", str(found.id))
    return view


def of_server(found: Migration, progress: Progress, sight: Sight) -> dict[str, Any]:
    """Return a live migration in progress, with what is copied."""
    return _common(found, sight) | {
        "server_uuid": found.server_uuid,
        "memory_total_bytes": progress.memory_total,
        "memory_processed_bytes": progress.memory_processed,
        "memory_remaining_bytes": progress.memory_remaining,
        "disk_total_bytes": progress.disk_total,
        "disk_processed_bytes": progress.disk_processed,
        "disk_remaining_bytes": progress.disk_remaining,
    }


def _common(found: Migration, sight: Sight) -> dict[str, Any]:
    shown = sight.hosts
    view: dict[str, Any] = {
        "id": found.id,
        "status": found.status,
        "source_compute": found.source_host if shown else None,
        "source_node": found.source_node if shown else None,
        "dest_compute": found.dest_host if shown else None,
        "dest_node": found.dest_node if shown else None,
        "dest_host": found.dest_address if shown else None,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }
    if sight.version >= 59:
        view["uuid"] = found.uuid
    if sight.version >= 80:
        view["user_id"] = found.user_id
        view["project_id"] = found.project_id
    return view
