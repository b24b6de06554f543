"""Cached templates of images: whose they are, and whether their disk is there."""

from __future__ import annotations

from collections.abc import Iterator

from common.findings import Finding, Level
from compute.doctor.facts import Facts
from compute.hypervisor.proxmox.vmconfig import marks


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield templates that are named as ours and don't carry the mark."""
    for one in facts.templates:
        if not any(line.startswith(marks.TEMPLATE) for line in marks.lines(one.config)):
            yield Finding(
                "template_unmarked",
                Level.WARNING,
                f"Node {one.node}",
                f"Template {one.vmid} is named as an image's, and its description doesn't say so.",
                "It isn't used: every build there imports the image anew. It may be somebody's: "
                "see what it is before it is renamed or removed.",
                (f"qm config {one.vmid}",),
            )


def whole(facts: Facts) -> Iterator[Finding]:
    """Yield templates whose disk is gone."""
    for one in facts.templates:
        if one.lost:
            yield Finding(
                "template_broken",
                Level.WARNING,
                f"Node {one.node}",
                f"The disk {one.lost} of template {one.vmid} isn't there.",
                "Builds of its image fail there. Without the template the next one makes it anew.",
                (f"qm destroy {one.vmid} --purge",),
            )
