"""The messages of services, and the steps of builds, actions and destroys: all are recorded.

A message that is new is in one of these tables, or a test fails: either a scenario sends it, or
it is said why none does.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compute.commands
import compute.worker.manager
import conductor.endpoints
import scheduler.manager
from compute.commands import COMMANDS
from compute.worker.answers import ANSWERS
from tests.chaos.hooks import KINDS
from tests.fixtures.messages import snake


def _of_conductors() -> Iterator[type[Any]]:
    """All endpoints of conductors, so that none is forgotten."""
    package = conductor.endpoints
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for name, one in inspect.getmembers(module, inspect.isclass):
            if name.endswith("Endpoint") and one.__module__ == found.name:
                yield one


ENDPOINTS = (
    *_of_conductors(),
    *(compute.worker.manager.Manager, compute.worker.manager.EventEndpoint),
    *(scheduler.manager.SchedulerManager, scheduler.manager.HostFactsManager),
)

#: sent in a recorded run
RECORDED = frozenset(
    {"create_servers", "act", "report", "may_start", "refused", "delete_server_group"}
    | {"delete_service"}
    | {"build", "destroy", "converge_affinity", "remove_group_rules", "introduce", "update_ratios"}
    | {"select", "select_many", "update_aggregates"}
)
#: sent in a recorded run of an action
ACTED = frozenset(
    {"power", "end_resize", "grow", "migrate_server", "live_migrate_server", "move"}
    | {"rebuild_server", "rescue_server", "swap", "end_swap", "create_server_image", "copy"}
    | {"attach_interface", "detach_interface", "plug", "drain", "shape", "resize_server"}
    | {"create_group", "resize_group", "change_group", "report_health", "find_ha_service"}
    | {"repair_member"}
)
#: sent without a cause: all the time, by what starts, and to ask whether somebody is there
IDLE = frozenset(
    {"alive", "heartbeat", "tick", "vm_states", "update_hosts", "announce", "claim_agents"}
    | {"publish_aggregates"}
    | {"ping", "time", "health_checks"}
    # by a conductor that starts
    | {"look_at_all"}
)
#: sent where something failed: ``test_incidents`` has them, and functional tests of late undos
FAILURES = frozenset({"note_failure", "may_undo", "release_agents"})
#: the audit's own, which begins again if it fails
AUDITS = frozenset({"begin_audit", "heal_finding", "read_inventory", "retire_template", "inspect"})
AUDITS |= {"begin_restore"}
#: about other actions, or about no server
OTHERS = frozenset(
    {"mark", "cache_image", "cache_images", "adopt", "abandon", "hold_server"}
    | {"mark_server", "retry_server"}
    | {"steer_migration", "evacuate_server", "delete_image"}
    | {"update_server", "set_server_metadata", "set_server_tags", "update_service"}
    | {"lock_server", "unlock_server", "reset_server_state", "set_quota_class"}
    | {"preview", "preview_servers", "capacity", "evacuation", "rebalance"}
    | {"drain_plan", "apply_rebalance", "set_bulk_migration_state"}
    | {"create_flavor", "update_flavor", "delete_flavor", "set_flavor_extra_specs"}
    | {"set_flavor_access", "create_keypair", "delete_keypair", "set_quota", "reset_quota"}
    | {"create_server_group", "create_aggregate", "update_aggregate", "set_aggregate_metadata"}
    | {"delete_aggregate", "add_aggregate_host", "remove_aggregate_host"}
    | {"authorize_console", "use_console_token", "check_console", "open_console"}
    | {"measure_server", "measure_host", "measure", "owners"}
    | {"list_host_tasks", "list_tasks"}
    | {"diagnose_server", "diagnose", "change_password", "set_password"}
    | {"server_console_log", "read_console_log"}
    | {"detach_address", "converge_filter", "check_filter"}
    # of VMs that are not in the record: a recorded run has none
    | {"look_at_others"}
    | {"create_image", "edit_image", "tag_image", "activate_image", "save_image"}
    | {"stage_image", "import_staged_image", "begin_image_download", "renew_image_download"}
    | {"fail_image_download"}
    | {"create_metadef_namespace", "update_metadef_namespace", "delete_metadef_namespace"}
    | {"change_metadef_items"}
    | {"create_image_member", "update_image_member", "delete_image_member"}
    | {"store_image", "remove_image", "make_vnet", "remove_vnet"}
    | {"create_volume", "edit_volume", "delete_volume", "extend_volume", "reset_volume"}
    | {"reserve_volume", "create_volume_type", "edit_volume_type", "delete_volume_type"}
    | {"set_default_volume_type", "update_volume_service"}
    | {"allow_volume_type", "attach_volume", "detach_volume", "set_delete_on_termination"}
    | {"make_volume", "remove_volume", "grow_volume", "plug_volume", "snap_volume"}
    | {"create_volume_snapshot", "edit_volume_snapshot", "delete_volume_snapshot"}
    | {"reset_volume_snapshot", "revert_volume", "reimage_volume"}
    | {"create_volume_transfer", "accept_volume_transfer", "delete_volume_transfer"}
    | {"delete_volume_message", "retype_volume", "upload_volume"}
    | {"create_backup", "edit_backup", "delete_backup", "restore_backup", "reset_backup"}
    | {"back_up_volume", "remove_backup"}
    | {"create_networks", "update_network", "delete_network", "auto_network"}
    | {"delete_auto_network", "create_subnets", "update_subnet", "delete_subnet"}
    | {"create_network_shares", "update_network_share", "delete_network_share"}
    | {"create_ports", "update_port", "delete_port", "change_tags"}
    | {"create_security_groups", "update_security_group", "delete_security_group"}
    | {"create_security_group_rules", "delete_security_group_rule"}
    | {"ensure_default_security_group", "change_server_security_group"}
    | {"create_address_groups", "update_address_group", "delete_address_group"}
    | {"change_addresses", "create_default_rules", "delete_default_rule"}
    # every run of a scaling group ends by its delete
    | {"create_profile", "change_profile", "delete_profile", "delete_group"}
    | {"tend_group", "repair_group", "steer_group", "add_members", "take_members_out"}
    | {
        "replace_members",
        "create_member",
        "change_member",
        "delete_member",
        "recover_member",
    }
    | {"create_policy", "change_policy", "delete_policy", "bind_policy", "unbind_policy"}
    | {"create_receiver", "change_receiver", "delete_receiver", "trigger_receiver"}
)
TABLES = (RECORDED, ACTED, IDLE, FAILURES, AUDITS, OTHERS)

#: steps of builds with more disks than one, which ``test_boot_volumes`` of agents and conductors
#: and ``test_local_disks`` of agents have
WITH_VOLUMES = frozenset({"compute_attach_volumes", "compute_create_local_disks"})

_STEP = re.compile(r'"(compute_\w+)"')


def messages() -> Iterator[str]:
    """What a service is sent: commands and questions by their kind."""
    yield from (snake(one.__name__) for one in (*COMMANDS, *ANSWERS))
    functions = (item for one in ENDPOINTS for item in vars(one).items())
    for name, found in functions:
        public = inspect.isfunction(found) and not name.startswith("_")
        if public and name not in KINDS and "ctxt" in inspect.signature(found).parameters:
            yield name


def steps() -> frozenset[str]:
    """Of an agent's build and destroy, with what undoes them, but for builds with volumes."""
    folder = Path(compute.commands.__file__).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("build.py", "destroy.py")]
    return frozenset(name for text in texts for name in _STEP.findall(text)) - WITH_VOLUMES
