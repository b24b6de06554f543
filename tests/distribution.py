"""How tests are spread over processes: one runs a whole file, or all files of one cloud."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

GROUPS: Mapping[str, str] = {
    "tests/browser/test_images.py": "dashboard",
    "tests/browser/test_operators.py": "dashboard",
    "tests/browser/test_pages.py": "dashboard",
    "tests/browser/test_rules_and_networks.py": "dashboard",
    "tests/browser/test_stories.py": "dashboard",
    "tests/chaos/test_every_task_state.py": "stage",
    "tests/chaos/test_late_reports.py": "stage",
    "tests/chaos/test_broker_restart.py": "stage",
    "tests/compat/test_openstack_actions.py": "acting site",
    "tests/compat/test_openstack_ports.py": "acting site",
    "tests/compat/test_openstack_networks.py": "acting site",
    "tests/compat/test_openstack_volumes.py": "acting site",
    "tests/compat/test_cinderclient.py": "acting site",
    "tests/compat/test_openstack_boot_volumes.py": "acting site",
    "tests/compat/test_openstack_volume_commands.py": "acting site",
    "tests/compat/test_openstacksdk_volumes.py": "acting site",
    "tests/contract/test_csi_volumes.py": "acting site",
    "tests/contract/test_hostile_volumes.py": "acting site",
    "tests/contract/test_printed_kubernetes.py": "acting site",
    "tests/contract/test_printed_terraform.py": "acting site",
    "tests/contract/test_terraform_volumes.py": "acting site",
    "tests/compat/test_openstack_cli.py": "site",
    "tests/compat/test_openstack_groups.py": "site",
    "tests/compat/test_openstacksdk.py": "site",
    "tests/compat/test_openstack_guest.py": "site",
    "tests/compat/test_openstack_images.py": "site",
    "tests/compat/test_openstack_live_migration.py": "site",
    "tests/compat/test_openstack_migrate.py": "site",
    "tests/compat/test_openstack_power.py": "site",
    "tests/compat/test_openstack_rebuild.py": "site",
    "tests/compat/test_openstack_record.py": "site",
    "tests/compat/test_openstack_resize.py": "site",
    "tests/compat/test_openstack_shelve.py": "site",
    "tests/functional/cli/test_live.py": "embedded",
    "tests/functional/cli/test_requests_of_hosts.py": "embedded",
    "tests/functional/dashboard/test_aggregates.py": "dashboard",
    "tests/functional/dashboard/test_flavors.py": "dashboard",
    "tests/functional/dashboard/test_images.py": "dashboard",
    "tests/functional/dashboard/test_operators.py": "dashboard",
    "tests/functional/dashboard/test_pages.py": "dashboard",
    "tests/functional/dashboard/test_projects.py": "dashboard",
    "tests/functional/dashboard/test_quotas.py": "dashboard",
    "tests/functional/dashboard/test_security.py": "dashboard",
    "tests/functional/dashboard/test_service.py": "dashboard",
    "tests/functional/dashboard/test_users.py": "dashboard",
    "tests/functional/dashboard/test_groups.py": "subjects",
    "tests/functional/dashboard/test_keypairs.py": "subjects",
    "tests/functional/dashboard/test_networks.py": "subjects",
    "tests/functional/dashboard/test_other_projects.py": "subjects",
    "tests/functional/dashboard/test_security_groups.py": "subjects",
    "tests/functional/dashboard/test_server_groups.py": "subjects",
    "tests/functional/follow/test_people.py": "embedded",
    "tests/functional/monitor/test_embedded.py": "embedded",
    "tests/functional/test_early_answers.py": "embedded",
    "tests/functional/test_long_queries.py": "embedded",
    "tests/functional/pages/test_commands.py": "embedded",
    "tests/functional/pages/test_services.py": "embedded",
    "tests/functional/identity/test_concurrency.py": "keystone",
    "tests/functional/identity/test_contents.py": "keystone",
    "tests/functional/identity/test_projects.py": "keystone",
    "tests/functional/identity/test_refusals.py": "keystone",
    "tests/functional/identity/test_token_check.py": "keystone",
    "tests/unit/common/clients/test_direct.py": "sources",
    "tests/unit/compute/hypervisor/proxmox/api/test_calls.py": "sources",
    "tests/unit/test_arrows.py": "sources",
    "tests/unit/test_digits.py": "sources",
    "tests/unit/test_packaging.py": "sources",
    "tests/unit/test_refusals.py": "sources",
    "tests/unit/test_remedies.py": "sources",
}
"""{file: group}: one process runs the files of a group, one after the other."""

_TAKEOVER = "tests/functional/conductor/takeover"
APART = frozenset(
    {
        "tests/chaos/test_every_step.py",
        "tests/functional/test_benchmarks.py",
        *(f"{_TAKEOVER}/test_{one}.py" for one in ("disks", "images", "moves", "networks")),
        *(f"{_TAKEOVER}/test_{one}.py" for one in ("plugs", "servers", "snapshots", "volumes")),
    }
)
"""Files whose tests need not run in one process."""

LONGEST = (
    "tests/compat/test_openstack_images.py",
    "tests/compat/test_openstack_cli.py",
    "tests/functional/cli/test_live.py",
    "tests/functional/pages/test_commands.py",
    "tests/functional/pages/test_settings.py",
    "tests/browser/test_pages.py",
    "tests/browser/test_stories.py",
    "tests/chaos/test_leak_paths.py",
    "tests/functional/test_distributed.py",
    "tests/functional/test_printed_deployment.py",
    "tests/functional/test_benchmarks.py",
    "tests/functional/test_quickstart.py",
    "tests/chaos/test_holders.py",
    "tests/chaos/test_locked_vms.py",
    "tests/chaos/test_remedies.py",
    "tests/functional/cli/test_up.py",
    "tests/chaos/test_every_step.py",
    "tests/compat/test_openstack_actions.py",
    "tests/chaos/test_every_task_state.py",
    "tests/functional/identity/test_life.py",
    "tests/functional/console/test_proxy.py",
    "tests/functional/audit/test_audit.py",
    "tests/chaos/test_moves_by_hand.py",
    "tests/chaos/test_lost_node.py",
    "tests/functional/compute/test_swap.py",
    "tests/functional/compute/test_retyped_volumes.py",
    "tests/functional/compute/test_boot_volumes.py",
    "tests/functional/audit/test_remedies.py",
    "tests/functional/test_rolling_restart.py",
    "tests/functional/compute/test_failures.py",
    "tests/functional/compute/test_move.py",
    "tests/functional/test_drain.py",
    "tests/functional/compute/test_fence.py",
    "tests/functional/compute/test_fence_affinity.py",
    "tests/functional/cli/test_same_as_openstack.py",
    "tests/functional/identity/test_concurrency.py",
    "tests/chaos/test_a_cloud_that_has_lived.py",
    "tests/functional/placement/test_client.py",
    "tests/functional/compute/test_stuck.py",
    "tests/chaos/test_stuck_ids.py",
    "tests/functional/placement/test_api.py",
    "tests/functional/placement/test_killed_workers.py",
    "tests/functional/placement/test_concurrency.py",
    "tests/functional/cli/test_operator_commands.py",
    "tests/chaos/test_orderly_stop.py",
    "tests/functional/placement/test_claims.py",
    "tests/compat/test_openstack_soft_delete.py",
    "tests/functional/compute/test_templates.py",
    "tests/chaos/test_edited_marks.py",
    "tests/chaos/test_real_world.py",
    "tests/functional/common/test_serving.py",
    "tests/functional/test_action_races.py",
    "tests/functional/compute/test_copy.py",
    "tests/functional/api_compute/test_server_lists.py",
    "tests/functional/compute/test_restarts.py",
    "tests/functional/placement/test_restores.py",
    "tests/functional/scheduler/test_clusters.py",
    "tests/functional/placement/test_faults.py",
    "tests/functional/api_network/test_clients.py",
    "tests/functional/scheduler/test_group_race.py",
)
"""Files that begin first, so that none is left when all others are done."""


def unit_of(nodeid: str) -> str:
    """Return what one process runs together: a group, a file, or one test."""
    file = nodeid.partition("::")[0]
    return nodeid if file in APART else GROUPS.get(file, file)


def by_length(item: pytest.Item) -> int:
    """Return a file's place in the order of their beginnings."""
    file = item.nodeid.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
