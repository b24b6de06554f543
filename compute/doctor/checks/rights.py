"""The token: for how long, whose, and what it can't see."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from common import clock
from common.findings import Finding, Level
from compute.doctor.checks.reach import SOON
from compute.doctor.facts import Facts
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.settings import Token

_ROOT = "root@pam"
#: a user that has only what the agents need
_OWN = Token("micronova@pve", "agent", "")


def lifetime(facts: Facts) -> Iterator[Finding]:
    """Yield that the token ends soon."""
    seconds = int(facts.token.get("expire") or 0)
    if not seconds:
        return
    ends = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    token = facts.settings.token
    if ends - clock.utcnow() < SOON:
        yield Finding(
            "token_ends",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The token {token.id} is valid until {ends:%Y-%m-%d %H:%M} UTC.",
            "After that nothing of the cluster can be reached.",
            (f"pveum user token modify {token.user} {token.name} --expire 0",),
        )


def least_privilege(facts: Facts) -> Iterator[Finding]:
    """Yield that the token is root's, or as mighty."""
    token = facts.settings.token
    if token.user == _ROOT:
        yield Finding(
            "token_is_root",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The token {token.id} belongs to {_ROOT}.",
            "Who gets hold of it has the cluster. Make a user of its own with the role of "
            "docs/proxmox.md.",
            tuple(privileges.token_lines(_OWN)),
        )


def sight(facts: Facts) -> Iterator[Finding]:
    """Yield paths whose VMs or storages the token doesn't see."""
    paths = sorted(privileges.hidden(facts.granted)) if facts.granted else []
    if paths:
        yield Finding(
            "token_hides",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The token {facts.settings.token.id} can't see what is under {', '.join(paths)}.",
            "A VMID or a volume there counts as gone although it exists, so ids of doubt stay "
            "quarantined.",
            tuple(
                f"pveum acl modify {path} --tokens '{facts.settings.token.id}' "
                f"--roles {privileges.ROLE}"
                for path in paths
            ),
        )
