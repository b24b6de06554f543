"""Findings of an audit in words, and which of them are things without an owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from common.counting import counted

Facts: TypeAlias = Mapping[str, Any]

#: findings about things on a hypervisor that may be this cloud's, and that no record owns
ORPHANS = frozenset(
    {"vm_of_deleted_server", "vm_not_recorded", "vm_without_server", "vm_half_made"}
    | {"volume_without_vm", "config_drive_without_server", "config_drive_left_behind"}
    | {"template_without_record"}
)


def is_orphan(finding: Facts) -> bool:
    """Return whether a finding is a thing without an owner."""
    return finding["kind"] in ORPHANS


def unproven(finding: Facts) -> str | None:
    """Return why a finding is only reported; None: it is proven ours, and can be healed."""
    if finding["heal"] is not None:
        return None
    return f"not proven ours ({finding['remedy'] or 'it is never touched'})"


def runs(finding: Facts) -> str | None:
    """Return the status of a VM that isn't stopped, removed by force only; else None."""
    status = (finding["evidence"] or {}).get("status")
    return None if status in (None, "stopped") else str(status)


#: of what an audit looks at, by its name in the report
_CAPITALS: Mapping[str, str] = {"vms": "VMs", "vmids": "VMIDs"}


def summary(report: Facts, left: int) -> str:
    """Return one line about an audit: what it looked at, what it healed, and how much differs."""
    looked = ", ".join(
        counted(count, _CAPITALS.get(what, what).removesuffix("s"))
        for what, count in report["looked_at"].items()
    )
    busy = counted(report["in_flux"], "server")
    flux = f", {busy} being worked on" if report["in_flux"] else ""
    end = f"{counted(left, 'difference')} left" if left else "everything agrees"
    return f"Looked at {looked}{flux}. Healed {report['healed']}; {end}."
