"""Every command that is printed as a remedy is carried out by a test, which is named here.

Failure categories, kinds of an audit's findings, the doctor's codes, and each module that prints a
command: to add one is to add its test, or the reason why nothing can carry it out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from common.failures import RULES
from common.messages.reports import Category
from conductor.audit.kinds import KINDS
from tests.unit import sources

ROOT = Path(__file__).resolve().parents[2]

_CHAOS = "tests/chaos/test_remedies.py"
_AGENT = "tests/functional/compute"
_AUDIT = "tests/functional/audit/test_remedies.py::test_what_is_printed_mends_it"
_DOCTOR = f"{_AGENT}/test_misconfigurations.py::test_each_line_mends_its_finding"
_SERVICES = "tests/functional/test_doctor_of_services.py"

#: what a remedy is, where it is no command that a test can carry out
NO_COMMAND = "no command: "
OUTSIDE = "acts on a machine, not on the API: "

CATEGORIES: Mapping[Category, str] = {
    Category.API_NOT_SUPPORTED: _DOCTOR,
    Category.CONFIGURATION: _DOCTOR,
    Category.AUTHORIZATION: f"{_CHAOS}::test_a_privilege_that_was_taken",
    Category.QUOTA_EXCEEDED: "tests/functional/audit/test_remedies.py::"
    "test_a_quota_that_is_used_up",
    Category.NO_VALID_HOST: f"{NO_COMMAND}the decision has the reason of each host",
    Category.NODE_UNHEALTHY: f"{OUTSIDE}a node that is off",
    Category.IMAGE_NOT_FOUND: f"{NO_COMMAND}only its owner has the image's data",
    Category.IMAGE_CORRUPT: f"{NO_COMMAND}only its owner has the image's data",
    Category.TEMPLATE_LOCKED: f"{_AGENT}/test_templates.py::"
    "test_a_locked_template_is_gone_around_and_named",
    Category.LOCK: "tests/chaos/test_locked_vms.py::test_the_remedy_works",
    Category.STORAGE_CONFLICT: f"{_AGENT}/test_strays.py::"
    "test_all_are_named_and_removed_by_one_remedy",
    Category.STORAGE_FULL: "tests/chaos/test_full_storage.py::test_a_server",
    Category.NETWORK: _DOCTOR,
    Category.TASK_TIMEOUT: f"{NO_COMMAND}the action again",
    Category.UNKNOWN_OUTCOME: f"{NO_COMMAND}the action again",
    Category.CREATION_FAILED: f"{_CHAOS}::"
    "test_a_task_that_failed_is_explained_and_not_only_repeated",
    Category.VANISHED: f"{_CHAOS}::test_a_vm_that_is_gone",
    Category.PROTECTED: f"{_CHAOS}::test_a_protected_vm",
    Category.MARK_LOST: f"{_CHAOS}::test_notes_that_were_edited",
    Category.FOREIGN: f"{_CHAOS}::test_a_vm_that_lost_all_its_marks",
    Category.DISK_LOST: f"{_CHAOS}::test_a_root_disk_that_was_removed",
}

_LEAKS = "tests/functional/audit/test_audit.py"
_ITSELF = "the audit does it by itself, and its command is vm_of_deleted_server's: "

#: kinds that print a command; those that ``test_what_is_printed_mends_it`` plants are found there
KINDS_ELSEWHERE: Mapping[str, str] = {
    "vm_not_recorded": f"{_ITSELF}{_AUDIT}",
    "config_drive_without_server": f"{_LEAKS}::test_a_config_drive_that_was_left_goes",
    "config_drive_left_behind": f"{_LEAKS}::"
    "test_a_copy_that_a_move_left_is_reported_and_a_drive_goes",
    "template_without_record": f"{_LEAKS}::test_a_template_that_no_record_names_goes",
    "holder_not_parked": "tests/chaos/test_volumes_by_hand.py::"
    "test_a_plugged_holder_is_parked_by_the_audit",
    "vm_record_lost": "tests/functional/test_restored_record.py::"
    "test_what_was_made_since_the_backup_keeps_its_addresses",
    "vnet_without_network": f"{_AGENT}/test_vnets.py::"
    "test_what_others_have_not_applied_is_applied_first",
    "migration_allocation_differs": f"{NO_COMMAND}confirm or revert, which only the owner knows",
    "operation_overdue": f"{NO_COMMAND}it shows the operation",
}

#: other modules that print a command of a remedy
MODULES: Mapping[str, str] = {
    "compute/hypervisor/proxmox/api/privileges.py": f"{_AGENT}/test_refused.py::test_of_a_server",
    "compute/hypervisor/proxmox/api/handshake.py": _DOCTOR,
    "compute/hypervisor/proxmox/vmconfig/by_hand.py": "tests/chaos/test_edited_notes.py::"
    "test_an_action",
    "compute/hypervisor/proxmox/cluster/locks.py": "tests/chaos/test_locked_vms.py::"
    "test_the_remedy_works",
    "compute/hypervisor/proxmox/cluster/vmid.py": f"{_AGENT}/test_refused.py::"
    "test_a_holder_whose_notes_were_edited",
    "compute/hypervisor/proxmox/sdn/vnets.py": f"{_AGENT}/test_vnets.py::"
    "test_what_others_have_not_applied_is_applied_first",
    "compute/hypervisor/proxmox/storage/one_volume.py": f"{_AGENT}/test_kept_by_snapshots.py::"
    "test_a_disk_in_a_snapshot_of_its_own_vm_is_not_deleted_by_name",
    "compute/hypervisor/proxmox/storage/volumes.py": f"{_AGENT}/test_strays.py::"
    "test_all_are_named_and_removed_by_one_remedy",
    "compute/hypervisor/proxmox/vm/half_created.py": f"{_AGENT}/test_templates.py::"
    "test_what_a_killed_worker_left_of_a_template_is_named_and_can_be_freed",
    "compute/hypervisor/proxmox/vm/noted_swap.py": f"{_AGENT}/test_swap.py::"
    "test_a_rescue_of_which_the_note_was_removed",
    "compute/hypervisor/proxmox/vm/owner_mark.py": f"{_AUDIT}",
    "compute/hypervisor/proxmox/vm/power.py": f"{_AGENT}/test_managed.py::"
    "test_what_the_manager_cannot_start_is_reported_and_works_after_the_remedy",
    "compute/hypervisor/proxmox/vm/removal.py": f"{_CHAOS}::test_a_protected_vm",
    "compute/hypervisor/proxmox/vm/root_disk.py": f"{_CHAOS}::test_a_root_disk_that_was_removed",
    "compute/hypervisor/proxmox/vm/saved.py": f"{_AGENT}/test_saved.py::"
    "test_a_memory_that_can_not_be_saved_leaves_the_vm_running_and_says_how_to_unlock_it",
    "compute/doctor": _DOCTOR,
    "compute/prepare": "tests/functional/cli/test_proxmox_prepare.py::"
    "test_the_lines_of_a_root_shell_make_the_same",
    "compute/preflight.py": _DOCTOR,
    "conductor/audit": _AUDIT,
    "common/failures.py": f"{_CHAOS}::test_every_category_has_a_remedy",
    "common/databases/revisions.py": f"{_SERVICES}::test_a_database_without_tables",
    "launcher/upgrading/checks.py": "tests/functional/test_upgrade.py::"
    "test_the_next_release_is_checked_and_its_schema_expanded",
    "common/story/summary.py": f"{NO_COMMAND}what the owner may choose next",
    "conductor/servers/remove/remove_left.py": _AUDIT,
    "conductor/engine/overslept.py": f"{NO_COMMAND}it shows what exists",
    "conductor/servers/create/replace_vmid.py": f"{NO_COMMAND}a list by which an option is chosen",
    "launcher/doctor/bus.py": f"{OUTSIDE}systemd's services",
    "launcher/doctor/identity.py": f"{_SERVICES}::test_a_role_that_is_missing",
    "launcher/doctor/data.py": f"{_SERVICES}::test_a_database_without_tables",
    "launcher/doctor/servers.py": f"{OUTSIDE}a server of PostgreSQL that is to be stopped",
    "db": f"{_SERVICES}::test_a_database_without_tables",
    "placement/db/migrate.py": f"{_SERVICES}::test_a_database_without_tables",
    "api": f"{NO_COMMAND}help, and commands of the caller's own choice",
    "cli": f"{NO_COMMAND}help, and commands of the caller's own choice",
}

FOLDERS = ("api", "cli", "common", "compute", "conductor", "console", "dashboard", "db")
FOLDERS += ("identity", "launcher", "placement", "scheduler", "web")
_COMMAND = re.compile(
    r"\b(?:(?:pveum|pvesm|pvesh|pvenode|pvecm|qm|ha-manager|systemctl) [a-z]"
    r"|openstack [a-z]+ (?:[a-z]+ )?"
    r"(?:set|add|confirm|create|delete|remove|show|list|start|rebuild)\b"
    r"|micronova (?:audit|db|doctor|explain|orphan|server|vmid) ?)"
)


_PROGRAM = re.compile(
    r"\b(?:pveum|pvesm|pvesh|pvenode|pvecm|qm|ha-manager|systemctl|openstack|micronova) "
)


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module that may be printed: no docstrings, help of options or names."""
    if not _PROGRAM.search(path.read_text(encoding="utf-8")):
        return
    nodes = sources.nodes(path)
    silent = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    for one in nodes:
        if isinstance(one, ast.Call):
            silent |= {id(key.value) for key in one.keywords if key.arg == "help"}
    for one in nodes:
        if id(one) not in silent and isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _printing() -> Iterator[str]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(_COMMAND.search(text) for text in _texts(path)):
                yield str(path.relative_to(ROOT))


def _of_kinds() -> set[str]:
    texts = {kind.name: f"{kind.remedy} {kind.doubt}" for kind in KINDS.values()}
    return {name for name, text in texts.items() if _COMMAND.search(text)}


def _planted() -> set[str]:
    """Return the kinds that the test of the audit's remedies plants."""
    text = (ROOT / _AUDIT.partition("::")[0]).read_text(encoding="utf-8")
    table = text.partition("CASES: Mapping[str, Case] = {")[2].partition("\n}")[0]
    return set(re.findall(r'^    "(\w+)": Case', table, re.MULTILINE))


def test_every_category_is_carried_out() -> None:
    assert CATEGORIES.keys() == set(Category) == RULES.keys()


def test_every_kind_that_prints_a_command_is_carried_out() -> None:
    assert _of_kinds() - _planted() == KINDS_ELSEWHERE.keys() - _planted()
    assert not KINDS_ELSEWHERE.keys() & _planted()


def test_every_module_that_prints_a_command_is_carried_out() -> None:
    unknown = [
        one
        for one in _printing()
        if not any(one == known or one.startswith(f"{known}/") for known in MODULES)
    ]
    assert unknown == [], "name the test that carries out what it prints"


@pytest.mark.parametrize("named", sorted({*CATEGORIES.values(), *MODULES.values()}))
def test_what_is_named_is_there(named: str) -> None:
    _require(named)


@pytest.mark.parametrize("kind", KINDS_ELSEWHERE)
def test_what_is_named_for_a_kind_is_there(kind: str) -> None:
    _require(KINDS_ELSEWHERE[kind])


def _require(named: str) -> None:
    reason, path, test = re.fullmatch(
        r"(.*?: )?(?:(tests/\S+?\.py)::(\w+).*|[^:]+)", named
    ).groups()
    if path is None:
        assert reason in (NO_COMMAND, OUTSIDE)
        return
    assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
