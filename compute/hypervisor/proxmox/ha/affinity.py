"""Strict server groups as affinity rules of high availability: written, completed, removed.

Rules accept only guests that are HA resources; so each VM becomes one, in state ``ignored``:
HA doesn't manage it, and all other calls work as before. If an operator sets one to ``started``,
HA enforces the rule. Proxmox VE itself removes a purged VM from its rule, and the rule with its
last VM.

Each write directly follows a look that proves ownership (``ownership``); where Proxmox VE takes a
digest, the write is bound to that look. Deletes take none: the object to delete is looked at
last, and again if the rest changed since the look. After a failure nothing is repeated without
another look. A VM becomes a resource only while all marks prove it to be its server's. A resource
of ours whose VMID belongs to another VM by now is still ours: removing it changes no VM. A
resource that others started or put into a rule of theirs is theirs: it only loses our comment. No
lock is held over a call: others write too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from common.log import logger
from common.messages.commands import Build, StrictGroup
from common.messages.inventory import SeenAffinity
from common.messages.reports import Category
from compute.hypervisor.port import Detail, HypervisorError
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.ha import ownership
from compute.hypervisor.proxmox.ha.ownership import AffinityRule, Resource, Whose
from compute.hypervisor.proxmox.ha.rules import has_rules

LOG = logger(__name__)

#: many may write at the same time, and one digest covers all rules: one write succeeds
TRIES = 8
#: longest pause before the second try; each further pause may be as much longer
PAUSE_SECONDS = 0.25

T = TypeVar("T")

Proven = Callable[[int], bool]
"""Whether the VM is its server's by all marks, looked at now."""


class NotOursError(HypervisorError):
    """What would be changed belongs to somebody else."""


def write_group(
    affinity: Affinity, version: Callable[[], str], build: Build, proven: Proven
) -> Detail:
    """Put the VM of a build into its group's rule, or report why not; never fails the build."""
    try:
        if not has_rules(version()):
            raise HypervisorError(
                Category.API_NOT_SUPPORTED, f"Proxmox VE {version()} has no affinity rules."
            )
        group: StrictGroup = build.group  # type: ignore[assignment]  # the step says so
        return affinity.join(build.cloud, group, build.placed.vmid, proven)
    except HypervisorError as error:
        vmid, server_uuid = build.placed.vmid, build.resource_id
        LOG.warning("VM %d of server %s is in no rule: %s", vmid, server_uuid, error.message)
        return {"warning": f"No affinity rule was written: {error.message}"}


class Affinity:
    """The affinity rules of one cluster; thread-safe."""

    def __init__(self, client: Client, pause: Callable[[float], object] = time.sleep) -> None:
        self._client, self._pause = client, pause

    def join(self, cloud: str, group: StrictGroup, vmid: int, proven: Proven) -> Detail:
        """Put a VM into its group's rule; a single VM only becomes a resource.

        Raises HypervisorError: ``api_not_supported`` where no rule can express the group,
        ``storage_conflict`` where resource or rule are somebody else's.
        """
        _fenced(cloud)
        _expressible(group)
        whose = (cloud, group.uuid)
        if not self._manage(whose, vmid, proven):
            raise _theirs(f"VM {vmid}", "it doesn't carry the server's marks")
        return self._repeated(lambda: self._write_rule(whose, group, None))

    def converge(
        self, cloud: str, group: StrictGroup, wanted: Iterable[int], proven: Proven
    ) -> None:
        """Make the group's rule name exactly these VMs; none: remove rule and resources.

        Unproven VMs are left out. Raises HypervisorError as ``join`` does, at the end.
        """
        _fenced(cloud)
        whose, asked = (cloud, group.uuid), sorted(wanted)
        if asked:
            _expressible(group)
        kept, problem = self._manage_all(whose, asked, proven)
        try:
            self._repeated(lambda: self._write_rule(whose, group, kept))
        except HypervisorError as error:
            problem = error
        # What is still ours is removed.
        for vmid in sorted(ownership.managed(self._resources(), whose) - kept):
            self._repeated(lambda vmid=vmid: self._let_go(whose, vmid))  # type: ignore[misc]
        if problem is not None and (asked or not isinstance(problem, NotOursError)):
            raise problem
        if problem is not None:
            LOG.warning(
                "The affinity rule of server group %s was removed, with a problem: %s",
                group.uuid,
                problem.message,
            )

    def seen(self) -> tuple[SeenAffinity, ...]:
        """Return all resources and rules that are a cloud's of micronova."""
        named, known = self._rules(), self._resources()
        rules = {
            whose: rule
            for whose, rule in named.items()
            if ownership.taken_over(rule, whose, known) is None
        }
        claimed = {one.whose for one in known.values() if one.whose is not None}
        return tuple(
            SeenAffinity(
                *whose,
                tuple(sorted(ownership.managed(known, whose))),
                tuple(sorted(rules[whose].members)) if whose in rules else (),
                whose in rules,
            )
            for whose in sorted(claimed | rules.keys())
        )

    # --- inner

    def _resources(self) -> dict[int, Resource]:
        return ownership.resources(self._client.get("cluster/ha/resources", type="vm"))

    def _rules(self) -> dict[Whose, AffinityRule]:
        return ownership.rules(self._client.get("cluster/ha/rules"))

    def _repeated(self, act: Callable[[], T]) -> T:
        """Look and act; repeat while another look may show something else."""
        for left in reversed(range(TRIES)):
            try:
                return act()
            except ApiError as error:
                if not left or not error.may_look_different:
                    raise
            self._pause(random.uniform(0, PAUSE_SECONDS * (TRIES - left)))  # noqa: S311
        raise AssertionError  # the last try returns or raises

    def _manage_all(
        self, whose: Whose, asked: Iterable[int], proven: Proven
    ) -> tuple[frozenset[int], HypervisorError | None]:
        """Return the VMs that are resources of ours now, and the last error of the others."""
        kept, problem = set(), None
        for vmid in asked:
            try:
                if self._manage(whose, vmid, proven):
                    kept.add(vmid)
            except NotOursError as error:
                problem = error
        return frozenset(kept), problem

    def _manage(self, whose: Whose, vmid: int, proven: Proven) -> bool:
        """Make a VM a resource of ours, if it is the server's.

        Raises HypervisorError (storage_conflict) when somebody else made it one.
        """

        def act() -> bool:
            there = self._resources().get(vmid)
            if not proven(vmid):
                return False
            if there is None:
                self._client.post(
                    "cluster/ha/resources",
                    sid=f"vm:{vmid}",
                    state="ignored",
                    comment=ownership.resource_comment(whose),
                )
            elif there.whose != whose:
                raise _theirs(f"The resource of VM {vmid}", "its comment is not ours")
            return True

        return self._repeated(act)

    def _let_go(self, whose: Whose, vmid: int) -> None:
        """Remove our resource, unless somebody else manages it or has a rule for it."""
        named = self._client.get("cluster/ha/rules", resource=f"vm:{vmid}")
        known = self._resources()
        resource = known.get(vmid)
        if resource is None or resource.whose != whose:
            return
        ours = ownership.rules(named).get(whose)
        others = [one for one in named if ours is None or str(one["rule"]) != ours.name]
        if ours is not None and ownership.taken_over(ours, whose, known) is not None:
            others.append(ours.name)
        if resource.unused and not others:
            # Out of our rule as well.
            self._client.delete(f"cluster/ha/resources/vm:{vmid}", purge=1)
        else:
            self._client.put(
                f"cluster/ha/resources/vm:{vmid}", delete="comment", digest=resource.digest
            )

    def _write_rule(self, whose: Whose, group: StrictGroup, only: frozenset[int] | None) -> Detail:
        """Make the rule agree with the resources (only those in ``only``); one look and one call.

        Raises HypervisorError (storage_conflict) when the rule is somebody else's.
        """
        # The rules first: so their digest covers the look at the resources.
        rule, known = self._rules().get(whose), self._resources()
        if rule is not None:
            self._require_ours(rule, whose, known)
        managed = ownership.managed(known, whose)
        members = managed if only is None else managed & only
        detail = {"rule": ownership.rule_name(whose), "vmids": sorted(members)}
        if len(members) < 2:
            # Proxmox VE refuses a new rule for one VM, but retains it if the others are purged.
            if rule is not None and not (members and rule.members <= members):
                self._drop(rule, whose)
            return {**detail, "waits_for": "a second server of the group in this cluster"}
        if rule is None or rule.members != members or rule.affinity != _affinity(group):
            self._write(whose, group, members, rule)
        return detail

    def _drop(self, rule: AffinityRule, whose: Whose) -> None:
        """Delete a rule of ours if it is still as it was looked at: deletes take no digest."""
        now = self._rules().get(whose)
        if now is not None and now != rule:
            raise ApiError(Category.LOCK, f"Rule {rule.name} was changed since it was read.")
        if now is not None:
            self._client.delete(f"cluster/ha/rules/{rule.name}")

    @staticmethod
    def _require_ours(rule: AffinityRule, whose: Whose, known: dict[int, Resource]) -> None:
        why = ownership.taken_over(rule, whose, known)
        if why is not None:
            raise _theirs(f"Rule {rule.name}", why)

    def _write(
        self, whose: Whose, group: StrictGroup, members: frozenset[int], rule: AffinityRule | None
    ) -> None:
        name = ownership.rule_name(whose)
        values: dict[str, Any] = {
            "type": ownership.RULE_KIND,
            "affinity": _affinity(group),
            "resources": ",".join(f"vm:{vmid}" for vmid in sorted(members)),
        }
        if rule is None:
            comment = ownership.rule_comment(whose)
            self._client.post("cluster/ha/rules", rule=name, comment=comment, **values)
        else:
            self._client.put(f"cluster/ha/rules/{name}", digest=rule.digest, **values)


def _affinity(group: StrictGroup) -> str:
    return "negative" if group.apart else "positive"


def _theirs(what: str, why: str) -> NotOursError:
    return NotOursError(
        Category.STORAGE_CONFLICT, f"{what} is not ours: {why}. It was not touched."
    )


def _fenced(cloud: str) -> None:
    """Require a cloud id: without one, the rules of two clouds could not be distinguished."""
    if not cloud:
        raise HypervisorError(Category.CONFIGURATION, "The cloud has no id of its own.")


def _expressible(group: StrictGroup) -> None:
    if group.apart and group.max_per_host > 1:
        raise HypervisorError(
            Category.API_NOT_SUPPORTED,
            f"No affinity rule can say that {group.max_per_host} servers may be on one host.",
        )
