"""Cached templates of images: whose they are, and whether their disk is there."""

from __future__ import annotations

from collections.abc import Iterator

from common.findings import Finding, Level
from compute.doctor.facts import Facts, TemplateFacts
from compute.hypervisor.proxmox.vmconfig import marks


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield templates that are named as ours and don't carry the mark."""
    for one in facts.templates:
        if not _is_marked(one):
            yield Finding(
                "template_unmarked",
                Level.WARNING,
                f"Node {one.node}",
                f"Template {one.vmid} is named as an image's, and its description doesn't say so.",
                "It isn't used: each build on that node imports the image again. It may not be "
                "micronova's: look at it before you rename or remove it.",
                (f"qm config {one.vmid}",),
            )


def whole(facts: Facts) -> Iterator[Finding]:
    """Yield templates of ours whose disk is gone."""
    for one in facts.templates:
        if one.lost and _is_marked(one):
            yield Finding(
                "template_broken",
                Level.WARNING,
                f"Node {one.node}",
                f"The disk {one.lost} of template {one.vmid} isn't there.",
                "Builds of its image fail on that node. Once it is removed, with which nothing is "
                "lost, the next build makes a new template.",
                (f"qm destroy {one.vmid} --purge",),
            )


def _is_marked(template: TemplateFacts) -> bool:
    return any(line.startswith(marks.TEMPLATE) for line in marks.lines(template.config))
