"""The token: for how long, whose, and what it can't see."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from shlex import quote

from common import clock
from common.findings import Finding, Level
from compute.doctor.checks.reach import SOON
from compute.doctor.facts import Facts
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.settings import Token

_ROOT = "root@pam"
#: each lets its owner give itself anything, or end the nodes
_MIGHTY = ("Permissions.Modify", "User.Modify", "Realm.Allocate", "Sys.PowerMgmt")
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
            (f"pveum user token modify {quote(token.user)} {quote(token.name)} --expire 0",),
        )


def user(facts: Facts) -> Iterator[Finding]:
    """Yield that the token's user ends soon, and the token with it."""
    seconds = int(facts.user.get("expire") or 0)
    if not seconds:
        return
    ends, name = datetime.datetime.fromtimestamp(seconds, datetime.UTC), facts.settings.token.user
    if ends - clock.utcnow() < SOON:
        yield Finding(
            "user_ends",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The user {name} is valid until {ends:%Y-%m-%d %H:%M} UTC, and so are its tokens.",
            "After that nothing of the cluster can be reached.",
            (f"pveum user modify {quote(name)} --expire 0",),
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
            (
                *privileges.secret_lines(_OWN),
                *privileges.all_grant_lines(_OWN),
                privileges.token_file(facts.settings, _OWN),
            ),
        )
        return
    mighty = sorted(facts.granted.get("/", {}).keys() & set(_MIGHTY))
    if mighty:
        yield Finding(
            "token_mighty",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"The token {token.id} has {', '.join(mighty)} on /, which nothing needs.",
            "Who gets hold of it has the cluster. Roles of docs/proxmox.md are enough.",
            _less(facts),
        )


def _less(facts: Facts) -> tuple[str, ...]:
    """Return the commands that revoke a token's excess privileges and grant the needed ones.

    A token without privilege separation gets separate privileges; its roles on / are revoked.
    """
    token = facts.settings.token
    separated = bool(int(facts.token.get("privsep", 1)))
    apart = f"pveum user token modify {token.user} {token.name} --privsep 1"
    roles = sorted(
        str(one.get("roleid"))
        for one in facts.acl
        if one.get("path") == "/" and one.get("ugid") == token.id
    )
    drop = [f"pveum acl delete / --tokens '{token.id}' --roles {role}" for role in roles]
    return (*([] if separated else [apart]), *drop, *privileges.all_grant_lines(token))


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
                privileges.grant_lines(
                    [privileges.sight(path) for path in paths], facts.settings.token, facts.granted
                )
            ),
        )
