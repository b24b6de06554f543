"""What services can be told, and the steps of builds, actions and destroys: all are recorded.

A message that is new is in one of these tables, or a test fails: either a scenario sends it, or
it is said why none does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import compute.manager
import scheduler.manager
from conductor.endpoints.aggregates import AggregateEndpoint
from conductor.endpoints.audits import AuditEndpoint
from conductor.endpoints.backups import BackupEndpoint
from conductor.endpoints.bulk_migrations import BulkMigrationEndpoint
from conductor.endpoints.consoles import ConsoleEndpoint
from conductor.endpoints.events import EventEndpoint
from conductor.endpoints.flavors import FlavorEndpoint
from conductor.endpoints.guests import GuestEndpoint
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.interfaces import InterfaceEndpoint
from conductor.endpoints.keypairs import KeyPairEndpoint
from conductor.endpoints.manage import ManageEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.refusals import RefusalEndpoint
from conductor.endpoints.server_groups import ServerGroupEndpoint
from conductor.endpoints.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.servers import ServerEndpoint
from conductor.endpoints.services import ServiceEndpoint
from conductor.endpoints.volume_messages import VolumeMessageEndpoint
from conductor.endpoints.volume_snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volume_transfers import VolumeTransferEndpoint
from conductor.endpoints.volume_types import VolumeTypeEndpoint
from conductor.endpoints.volumes import VolumeEndpoint
from conductor.endpoints.whatif import WhatIfEndpoint

ENDPOINTS = (
    *(
        ServerEndpoint,
        FlavorEndpoint,
        KeyPairEndpoint,
        QuotaEndpoint,
        ServiceEndpoint,
        AuditEndpoint,
        ImageEndpoint,
        ManageEndpoint,
        RefusalEndpoint,
    ),
    *(
        AggregateEndpoint,
        ConsoleEndpoint,
        EventEndpoint,
        ServerGroupEndpoint,
        WhatIfEndpoint,
        BulkMigrationEndpoint,
    ),
    *(GuestEndpoint, InterfaceEndpoint),
    *(VolumeEndpoint, VolumeSnapshotEndpoint, VolumeTypeEndpoint, ServerVolumeEndpoint),
    *(VolumeTransferEndpoint, VolumeMessageEndpoint, BackupEndpoint),
    *(compute.manager.Manager, compute.manager.EventEndpoint),
    *(scheduler.manager.SchedulerManager, scheduler.manager.HostFactsManager),
)

#: sent in a recorded run
RECORDED = frozenset(
    {"create_servers", "act", "report", "refused", "delete_server_group", "delete_service"}
    | {"build", "destroy", "converge_affinity", "remove_group_rules", "introduce", "update_ratios"}
    | {"select", "select_many", "update_aggregates"}
)
#: sent in a recorded run of an action
ACTED = frozenset(
    {"power", "end_resize", "grow", "migrate_server", "live_migrate_server", "move"}
    | {"rebuild_server", "rescue_server", "swap", "end_swap", "create_server_image", "copy"}
    | {"attach_interface", "detach_interface", "plug", "drain", "shape", "resize_server"}
)
#: sent without a cause all the time, by whoever starts, and to ask whether somebody is there
IDLE = frozenset(
    {"alive", "heartbeat", "tick", "vm_states", "update_hosts", "announce"}
    | {"publish_aggregates"}
    | {"ping"}
)
#: sent where something failed: ``test_incidents`` has them, and functional tests of late undos
FAILURES = frozenset({"note_failure", "may_undo"})
#: the audit's own, which begins anew if it comes to nothing
AUDITS = frozenset({"begin_audit", "heal_finding", "inventory", "retire_template", "inspect"})
#: about other actions, or about no server
OTHERS = frozenset(
    {"mark", "cache_image", "cache_images", "adopt", "abandon", "hold_server"}
    | {"mark_server", "retry_server"}
    | {"steer_migration", "evacuate_server", "ha_service", "delete_image"}
    | {"update_server", "set_server_metadata", "set_server_tags", "update_service"}
    | {"lock_server", "unlock_server", "reset_server_state", "set_quota_class"}
    | {"preview", "preview_servers", "capacity", "evacuation", "rebalance"}
    | {"drain_plan", "apply_rebalance", "steer_bulk_migration"}
    | {"create_flavor", "update_flavor", "delete_flavor", "set_flavor_extra_specs"}
    | {"set_flavor_access", "create_keypair", "delete_keypair", "set_quota", "reset_quota"}
    | {"create_server_group", "create_aggregate", "update_aggregate", "set_aggregate_metadata"}
    | {"delete_aggregate", "add_aggregate_host", "remove_aggregate_host"}
    | {"authorize_console", "use_console_token", "console_problem", "open_console"}
    | {"diagnose_server", "diagnose", "change_password", "set_password"}
    | {"server_console_log", "console_log"}
    | {"detach_address", "converge_filter", "check_filter"}
    # of VMs that the record doesn't know, of which a recorded run has none
    | {"look_at_others"}
    | {"create_image", "edit_image", "tag_image", "activate_image", "save_image"}
    | {"stage_image", "import_staged_image", "begin_image_download", "keep_image_download"}
    | {"fail_image_download"}
    | {"create_metadef_namespace", "update_metadef_namespace", "delete_metadef_namespace"}
    | {"change_metadef_items"}
    | {"create_image_member", "update_image_member", "delete_image_member"}
    | {"store_image", "remove_image", "make_vnet", "remove_vnet"}
    | {"create_volume", "edit_volume", "delete_volume", "extend_volume", "reset_volume"}
    | {"reserve_volume", "create_volume_type", "edit_volume_type", "delete_volume_type"}
    | {"set_default_volume_type", "update_volume_service"}
    | {"allow_volume_type", "attach_volume", "detach_volume", "keep_volume"}
    | {"make_volume", "remove_volume", "grow_volume", "plug_volume", "snap_volume"}
    | {"create_volume_snapshot", "edit_volume_snapshot", "delete_volume_snapshot"}
    | {"reset_volume_snapshot", "revert_volume", "reimage_volume"}
    | {"create_volume_transfer", "accept_volume_transfer", "delete_volume_transfer"}
    | {"delete_volume_message", "retype_volume", "upload_volume"}
    | {"create_backup", "edit_backup", "delete_backup", "restore_backup", "reset_backup"}
    | {"back_up_volume", "remove_backup"}
    | {"create_address_groups", "update_address_group", "delete_address_group"}
    | {"change_addresses", "create_default_rules", "delete_default_rule"}
)
TABLES = (RECORDED, ACTED, IDLE, FAILURES, AUDITS, OTHERS)

#: steps of builds with more disks than one, which ``test_boot_volumes`` of agents and conductors
#: and ``test_local_disks`` of agents have
WITH_VOLUMES = frozenset({"compute_attach_volumes", "compute_create_local_disks"})

_STEP = re.compile(r'"(compute_\w+)"')


def messages() -> Iterator[str]:
    """Whatever a service can be told."""
    functions = (item for one in ENDPOINTS for item in vars(one).items())
    for name, found in functions:
        public = inspect.isfunction(found) and not name.startswith("_")
        if public and "ctxt" in inspect.signature(found).parameters:
            yield name


def steps() -> frozenset[str]:
    """Of an agent's build and destroy, with what undoes them, but for builds with volumes."""
    folder = Path(compute.manager.__file__).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("build.py", "destroy.py")]
    return frozenset(name for text in texts for name in _STEP.findall(text)) - WITH_VOLUMES
