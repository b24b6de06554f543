"""What is said of findings."""

from __future__ import annotations

from typing import Any

from common.story.findings import is_orphan, runs, summary, unproven


def a_finding(**changes: Any) -> dict[str, Any]:
    base = {"kind": "vm_of_deleted_server", "heal": "destroy", "remedy": None, "evidence": {}}
    return {**base, **changes}


def test_what_is_an_orphan_and_why_it_is_kept() -> None:
    assert is_orphan(a_finding())
    assert not is_orphan(a_finding(kind="mark_lost"))
    assert unproven(a_finding()) is None
    assert unproven(a_finding(heal=None)) == "not proven ours (it is never touched)"
    assert unproven(a_finding(heal=None, remedy="as root")) == "not proven ours (as root)"
    assert runs(a_finding(evidence=None)) is None
    assert runs(a_finding(evidence={"status": "stopped"})) is None
    assert runs(a_finding(evidence={"status": "running"})) == "running"


def test_an_audit_in_a_sentence() -> None:
    report = {
        "looked_at": {"servers": 2, "vms": 3, "vmids": 1, "clusters": 1},
        "in_flux": 1,
        "healed": 4,
    }
    assert summary(report, 0) == (
        "Looked at 2 servers, 3 VMs, 1 VMID, 1 cluster, 1 server being worked on. "
        "Healed 4; everything agrees."
    )
    assert summary({**report, "in_flux": 0}, 5).endswith("Healed 4; 5 differences left.")
    assert summary(report, 1).endswith("; 1 difference left.")
