"""Strict server groups as affinity rules of high availability: written, completed, removed.

A rule takes only guests that are resources of high availability; so each becomes one, in state
``ignored``: nobody manages it, and every other call works as before. Whoever sets one to
``started`` has the rule kept. Ours are resources whose comment, and rules whose name, say this
cloud and a group; others are never changed. A VM that is purged leaves its rule, and the last one
takes the rule along: Proxmox VE does that itself.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common.log import logger
from common.messages.commands import Build, StrictGroup
from common.messages.reports import Category
from compute.hypervisor.port import Detail, HypervisorError
from compute.hypervisor.proxmox.client import Client
from compute.hypervisor.proxmox.clusterwide import has_rules
from compute.hypervisor.proxmox.errors import ApiError
from compute.hypervisor.proxmox.rules import vmids
from compute.messages import SeenAffinity

LOG = logger(__name__)

#: another worker may write the same rule at the same time: its digest tells
TRIES = 5
_COMMENT = re.compile(r"^micronova: cloud=(\S+) group=(\S+)$")
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_NAME = re.compile(rf"^micronova-(.+)-({_UUID})$")

#: somebody else wrote meanwhile
_CHANGED = re.compile(r"already defined|does not exist|modified configuration|got lock", re.I)

#: cloud and group
_Whose = tuple[str, str]


@dataclass(frozen=True)
class _Resource:
    whose: _Whose | None
    """None: not ours."""
    state: str
    digest: str


@dataclass(frozen=True)
class _Rule:
    name: str
    affinity: str
    members: frozenset[int]
    digest: str


def told(affinity: Affinity, version: Callable[[], str], build: Build) -> Detail:
    """Put the VM of a build into its group's rule, or say why there is none: no reason to fail."""
    try:
        if not has_rules(version()):
            raise HypervisorError(
                Category.API_NOT_SUPPORTED, f"Proxmox VE {version()} has no affinity rules."
            )
        group: StrictGroup = build.group  # type: ignore[assignment]  # the step says so
        return affinity.join(build.cloud, group, build.placed.vmid)
    except HypervisorError as error:
        LOG.warning("VM %d is in no affinity rule: %s", build.placed.vmid, error.message)
        return {"warning": f"No affinity rule was written: {error.message}"}


class Affinity:
    """The rules of one cluster; safe for any number of threads."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()

    def join(self, cloud: str, group: StrictGroup, vmid: int) -> Detail:
        """Have a VM in its group's rule; alone it only becomes a resource. Raises HypervisorError:
        ``api_not_supported`` where no rule can say what the group does."""
        _fenced(cloud)
        _expressible(group)
        with self._lock:
            self._manage((cloud, group.uuid), [vmid])
            return self._settle(cloud, group, frozenset())

    def converge(self, cloud: str, group: StrictGroup, wanted: Iterable[int]) -> None:
        """Have just these VMs of ours in the group's rule; none: no rule, no resource of ours."""
        _fenced(cloud)
        whose, keep = (cloud, group.uuid), frozenset(wanted)
        with self._lock:
            stale = self._managed().get(whose, frozenset()) - keep
            if not keep:
                self._drop_rule(whose)
            for vmid in sorted(stale):
                self._let_go(whose, vmid)
            if keep:
                _expressible(group)
                self._manage(whose, sorted(keep))
                self._settle(cloud, group, stale)

    def seen(self) -> tuple[SeenAffinity, ...]:
        """All resources and rules that say that a cloud of micronova made them."""
        managed, rules = self._managed(), self._rules()
        return tuple(
            SeenAffinity(
                *whose,
                tuple(sorted(managed.get(whose, ()))),
                tuple(sorted(rules[whose].members)) if whose in rules else (),
                whose in rules,
            )
            for whose in sorted({*managed, *rules})
        )

    # --- inner

    def _resources(self) -> dict[int, _Resource]:
        listed = self._client.get("cluster/ha/resources", type="vm")
        return {vmid: _resource(one) for one in listed for vmid in vmids([str(one["sid"])])}

    def _managed(self) -> dict[_Whose, frozenset[int]]:
        """The VMs that are resources of ours, by whose they are."""
        found: dict[_Whose, frozenset[int]] = {}
        for vmid, resource in self._resources().items():
            if resource.whose is not None:
                found[resource.whose] = found.get(resource.whose, frozenset()) | {vmid}
        return found

    def _manage(self, whose: _Whose, wanted: Iterable[int]) -> None:
        """Have each a resource; one that is somebody else's stays as it is."""
        there = self._resources()
        for vmid in wanted:
            if vmid not in there:
                self._client.post(
                    "cluster/ha/resources",
                    sid=f"vm:{vmid}",
                    state="ignored",
                    comment="micronova: cloud={} group={}".format(*whose),
                )

    def _let_go(self, whose: _Whose, vmid: int) -> None:
        """Have no resource of ours; what somebody manages by now, or has a rule for, is theirs."""
        resource = self._resources().get(vmid)
        if resource is None or resource.whose != whose:
            return
        named = self._client.get("cluster/ha/rules", resource=f"vm:{vmid}")
        others = [one for one in named if str(one["rule"]) != _name(whose)]
        if resource.state == "ignored" and not others:
            # Out of our rule as well.
            self._client.delete(f"cluster/ha/resources/vm:{vmid}", purge=1)
        else:
            self._client.put(
                f"cluster/ha/resources/vm:{vmid}", delete="comment", digest=resource.digest
            )

    def _drop_rule(self, whose: _Whose) -> None:
        if whose in self._rules():
            self._client.delete(f"cluster/ha/rules/{_name(whose)}")

    def _rules(self) -> dict[_Whose, _Rule]:
        found = {}
        for one in self._client.get("cluster/ha/rules", type="resource-affinity"):
            match = _NAME.match(str(one["rule"]))
            if match is not None:
                found[match[1], match[2]] = _rule(one)
        return found

    def _settle(self, cloud: str, group: StrictGroup, without: frozenset[int]) -> Detail:
        """Have the rule say what the resources say, and what else it says already."""
        whose, name = (cloud, group.uuid), _name((cloud, group.uuid))
        for left in reversed(range(TRIES)):
            rule = self._rules().get(whose)
            named = rule.members if rule is not None else frozenset()
            members = (self._managed().get(whose, frozenset()) | named) - without
            detail = {"rule": name, "vmids": sorted(members)}
            if len(members) < 2:
                # Proxmox VE takes no rule of one.
                if rule is not None:
                    self._client.delete(f"cluster/ha/rules/{name}")
                return {**detail, "waits_for": "a second server of the group in this cluster"}
            if rule is not None and rule.members == members and rule.affinity == _affinity(group):
                break
            try:
                self._write(name, group, members, rule)
                break
            except ApiError as error:
                if not left or not _worth_another_look(error):
                    raise
        return detail

    def _write(
        self, name: str, group: StrictGroup, members: frozenset[int], rule: _Rule | None
    ) -> None:
        values: dict[str, Any] = {
            "type": "resource-affinity",
            "affinity": _affinity(group),
            "resources": ",".join(f"vm:{vmid}" for vmid in sorted(members)),
        }
        if rule is None:
            comment = f"Server group {group.uuid}"
            self._client.post("cluster/ha/rules", rule=name, comment=comment, **values)
        else:
            self._client.put(f"cluster/ha/rules/{name}", digest=rule.digest, **values)


def _name(whose: _Whose) -> str:
    return "micronova-{}-{}".format(*whose)


def _resource(one: Mapping[str, Any]) -> _Resource:
    match = _COMMENT.match(str(one.get("comment") or "").strip())
    whose = (match[1], match[2]) if match else None
    return _Resource(whose, str(one.get("state") or "started"), str(one.get("digest")))


def _rule(one: Mapping[str, Any]) -> _Rule:
    members = frozenset(vmids(str(one.get("resources") or "").split(",")))
    return _Rule(str(one["rule"]), str(one.get("affinity")), members, str(one.get("digest")))


def _affinity(group: StrictGroup) -> str:
    return "negative" if group.apart else "positive"


def _worth_another_look(error: ApiError) -> bool:
    return error.category is Category.UNKNOWN_OUTCOME or bool(_CHANGED.search(error.message))


def _fenced(cloud: str) -> None:
    """What names no cloud could not be told from another one's."""
    if not cloud:
        raise HypervisorError(Category.CONFIGURATION, "The cloud has no id of its own.")


def _expressible(group: StrictGroup) -> None:
    if group.apart and group.max_per_host > 1:
        raise HypervisorError(
            Category.API_NOT_SUPPORTED,
            f"No affinity rule can say that {group.max_per_host} servers may be on one host.",
        )
