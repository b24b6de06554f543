"""Who owns HA resources and affinity rules, by their content. Pure.

A resource is ours if its comment names a cloud and a group. A rule is ours if its name and comment
name a group, and if none of its guests is somebody else's resource: others take a rule over by
changing its comment or adding guests of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compute.hypervisor.proxmox.ha.rules import vmids

_RESOURCE_COMMENT = re.compile(r"^micronova: cloud=(\S+) group=(\S+)$")
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_RULE_NAME = re.compile(rf"^micronova-(.+)-({_UUID})$")

RULE_KIND = "resource-affinity"

Whose = tuple[str, str]
"""Cloud and group."""


@dataclass(frozen=True)
class Resource:
    """A VM as a resource; ``whose`` None: not ours."""

    whose: Whose | None
    state: str
    digest: str
    """The digest of all resources of the cluster, as Proxmox VE computes it."""

    @property
    def unused(self) -> bool:
        """Whether the HA manager is to leave it alone."""
        return self.state == "ignored"


@dataclass(frozen=True)
class AffinityRule:
    """A rule of any kind; ``digest`` is of all rules of the cluster."""

    name: str
    kind: str
    affinity: str
    members: frozenset[int]
    only_vms: bool
    comment: str
    digest: str


def resource_comment(whose: Whose) -> str:
    """Return the comment of a resource of ours."""
    return "micronova: cloud={} group={}".format(*whose)


def rule_name(whose: Whose) -> str:
    """Return the name of a group's rule in a cloud."""
    return "micronova-{}-{}".format(*whose)


def rule_comment(whose: Whose) -> str:
    """Return the comment of a rule of ours."""
    return f"Server group {whose[1]}"


def resources(listed: Iterable[Mapping[str, Any]]) -> dict[int, Resource]:
    """Return the resources of ``GET /cluster/ha/resources`` by VMID."""
    return {vmid: _resource(one) for one in listed for vmid in vmids([str(one["sid"])])}


def _resource(one: Mapping[str, Any]) -> Resource:
    match = _RESOURCE_COMMENT.match(str(one.get("comment") or "").strip())
    whose = (match[1], match[2]) if match else None
    return Resource(whose, str(one.get("state") or "started"), str(one.get("digest")))


def managed(known: Mapping[int, Resource], whose: Whose) -> frozenset[int]:
    """Return the VMs that are resources of ours for a group."""
    return frozenset(vmid for vmid, one in known.items() if one.whose == whose)


def rules(listed: Iterable[Mapping[str, Any]]) -> dict[Whose, AffinityRule]:
    """Return the rules of ``GET /cluster/ha/rules`` with a name of our form, by owner."""
    found = {}
    for one in listed:
        match = _RULE_NAME.match(str(one["rule"]))
        if match is not None:
            found[match[1], match[2]] = _rule(one)
    return found


def _rule(one: Mapping[str, Any]) -> AffinityRule:
    sids = [sid for sid in str(one.get("resources") or "").split(",") if sid.strip()]
    members = vmids(sids)
    return AffinityRule(
        str(one["rule"]),
        str(one.get("type")),
        str(one.get("affinity")),
        frozenset(members),
        len(members) == len(sids),
        str(one.get("comment") or "").strip(),
        str(one.get("digest")),
    )


def taken_over(rule: AffinityRule, whose: Whose, known: Mapping[int, Resource]) -> str | None:
    """Return why a rule with our name is somebody else's by now, or None.

    A member that is no resource any more has no owner: it was removed without its rule.
    """
    if rule.kind != RULE_KIND:
        return f"it is a {rule.kind} rule"
    if rule.comment != rule_comment(whose):
        return "its comment is not ours"
    if not rule.only_vms:
        return "it names containers"
    theirs = sorted(vmid for vmid in rule.members & known.keys() if known[vmid].whose != whose)
    if theirs:
        return f"it names resources that are not ours (VMs {', '.join(map(str, theirs))})"
    return None
