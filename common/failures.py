"""Failure categories as data: what is done about each, and what people read.

``verdict`` says how to continue: wait on the same host, take another host or another cluster,
probe an unknown outcome, give up, or quarantine the VMID.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from common.messages.reports import Category, Failure


class Verdict(enum.StrEnum):
    """What to do about a failure."""

    WAIT = "wait"  #: the same host again, after a pause
    OTHER_HOST = "other_host"
    AWAIT_HOST = "await_host"  #: another host; where there is none, this one after a pause
    OTHER_CLUSTER = "other_cluster"
    PROBE = "probe"  #: the outcome is unknown: look, then continue
    FATAL = "fatal"  #: no other host would do better
    QUARANTINE = "quarantine"  #: another VMID; this one waits for the operator


@dataclass(frozen=True)
class Rule:
    """What one category means."""

    verdict: Verdict
    user: str
    """What the owner of the server reads."""
    operator: str
    """What the operator reads."""
    code: int = 500
    """The fault's code (Nova's faults carry an HTTP-like number)."""
    blames_host: bool = False
    """Whether it speaks against the host: other builds avoid it for a while."""


RULES: Mapping[Category, Rule] = {
    Category.API_NOT_SUPPORTED: Rule(
        Verdict.OTHER_HOST,
        "This host can't provision the server in any way it was configured for.",
        "The node's Proxmox version or storage offers no way to the disk; see docs/proxmox.md.",
        blames_host=True,
    ),
    Category.CONFIGURATION: Rule(
        Verdict.OTHER_HOST,
        "The host is not configured for this server.",
        "Proxmox refused the request as wrong; the message names the parameter or object.",
        blames_host=True,
    ),
    Category.AUTHORIZATION: Rule(
        Verdict.OTHER_CLUSTER,
        "The cloud is not allowed to do this on the host.",
        "The Proxmox token lacks a privilege; the message names path and privilege.",
        403,
        blames_host=True,
    ),
    Category.QUOTA_EXCEEDED: Rule(
        Verdict.FATAL, "The project's quota is used up.", "Quota of the project is used up.", 403
    ),
    Category.NO_VALID_HOST: Rule(
        Verdict.FATAL, "No host can take the server.", "See the decision for each host's reason."
    ),
    Category.NODE_UNHEALTHY: Rule(
        Verdict.OTHER_HOST,
        "The host failed.",
        "The node is offline, unreachable or lost quorum.",
        blames_host=True,
    ),
    Category.IMAGE_NOT_FOUND: Rule(
        Verdict.FATAL, "The image is not available.", "The import volume is missing.", 404
    ),
    Category.IMAGE_CORRUPT: Rule(
        Verdict.FATAL, "The image is damaged.", "The import volume can't be read or differs.", 400
    ),
    Category.TEMPLATE_LOCKED: Rule(
        Verdict.FATAL,
        "The image's cached copy on the host is locked.",
        "The template carries a lock with no live task; only root@pam can clear it.",
    ),
    Category.LOCK: Rule(
        Verdict.WAIT,
        "The host is busy.",
        "A lock was not free in time; it is not the host's fault.",
    ),
    Category.STORAGE_CONFLICT: Rule(
        Verdict.QUARANTINE,
        "Left-over storage was in the way.",
        "A leftover volume has this VMID's names; see the orphans.",
    ),
    Category.STORAGE_FULL: Rule(
        Verdict.OTHER_HOST,
        "The host's storage is full.",
        "The storage has no room for the disk.",
        blames_host=True,
    ),
    Category.NETWORK: Rule(
        Verdict.OTHER_HOST,
        "The network is not available on the host.",
        "Bridge or vnet is missing on the node, or SDN.Use is not granted.",
        blames_host=True,
    ),
    Category.TASK_TIMEOUT: Rule(
        Verdict.PROBE,
        "The host did not finish in time.",
        "A Proxmox task outlived its deadline.",
        blames_host=True,
    ),
    Category.UNKNOWN_OUTCOME: Rule(
        Verdict.PROBE,
        "The host's answer was lost.",
        "A write had no answer; it is being probed.",
        blames_host=True,
    ),
    Category.CREATION_FAILED: Rule(
        Verdict.OTHER_HOST,
        "The host could not build the server.",
        "The Proxmox task failed.",
        blames_host=True,
    ),
    Category.VANISHED: Rule(
        Verdict.FATAL,
        "The server's machine is no longer there.",
        "Somebody removed the VM, or gave its VMID to another one. It is not created again.",
    ),
    Category.PROTECTED: Rule(
        Verdict.FATAL,
        "The server's machine is protected from removal. It was left as it is.",
        "The VM has the option 'protection'; the remedy removes it.",
        409,
    ),
}


#: categories that end by themselves on the host of the VM
PASSING = frozenset({Verdict.WAIT, Verdict.AWAIT_HOST})


def passes(failure: Failure) -> bool:
    """Return whether waiting may end it, if there is no other host to go to."""
    return verdict_of(failure) in PASSING


def verdict_of(failure: Failure) -> Verdict:
    """Return what to do about a failure: its own verdict, else its category's rule."""
    if failure.verdict in set(Verdict):
        return Verdict(failure.verdict)
    return RULES[failure.category].verdict


#: verdicts that don't blame the host, whatever the category
_NOT_THE_HOSTS = frozenset({Verdict.WAIT, Verdict.FATAL, Verdict.QUARANTINE})


def blames_host(failure: Failure) -> bool:
    """Return whether a failed build speaks against its host.

    It doesn't if the request, its image or the VMID is at fault, or if a lock was held: otherwise
    impossible requests would divert others from good hosts.
    """
    return RULES[failure.category].blames_host and verdict_of(failure) not in _NOT_THE_HOSTS


#: seconds before the n-th retry; the last one repeats; jitter is added where it is used
BACKOFF_SECONDS = (30, 60, 120, 300, 600)
#: share by which a wait is made longer or shorter, so that not all return at once
JITTER = 0.2


def backoff_seconds(attempt: int) -> int:
    """Return seconds to wait before the attempt after this one (attempts count from 1)."""
    return BACKOFF_SECONDS[min(max(attempt, 1), len(BACKOFF_SECONDS)) - 1]
