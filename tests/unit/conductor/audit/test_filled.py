"""Remedies of findings: what others named is one word of the commands, whatever it has."""

from __future__ import annotations

import shlex

import pytest

from conductor.audit.auditor import filled
from conductor.audit.facts import Finding
from conductor.audit.kinds import KINDS
from tests.fixtures.nasty import IN_SHELLS


def finding(**evidence: str | int | None) -> Finding:
    return Finding(
        *("volume_left_behind", "c1/x", "Seen."),
        cluster="c1",
        node="pve1",
        vmid=100,
        evidence=evidence,
    )


@pytest.mark.parametrize("name", IN_SHELLS)
def test_a_volume(name: str) -> None:
    volid = f"local:100/{name}.raw"
    text = filled(str(KINDS["volume_left_behind"].remedy), finding(volid=volid))
    line = text.partition("as root on pve1: ")[2]
    assert shlex.split(line) == ["pvesm", "free", volid]


@pytest.mark.parametrize("name", IN_SHELLS)
def test_a_snapshot_and_an_option(name: str) -> None:
    text = filled("qm delsnapshot {vmid} {snapshot}", finding(snapshot=name))
    assert shlex.split(text) == ["qm", "delsnapshot", "100", name]


def test_usual_values_are_as_they_are() -> None:
    assert filled("{project}", finding()) == "…"
    assert filled("{project} {vlan}", finding(project="p1", vlan=7)) == "p1 7"
    assert filled("{marks}", finding(marks="qm set 100 --description $'a'")).startswith("qm set 1")
    assert (
        filled("{subject}: {volid}", finding(volid="local:iso/a.iso")) == "c1/x: local:iso/a.iso"
    )
