"""Failure categories as data: what is done about each, and what people read.

``verdict`` says how to continue: wait on the same host, take another host or another cluster,
probe an unknown outcome, give up, or quarantine the VMID.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from common.messages.reports import Category, Failure


class Verdict(enum.StrEnum):
    """What to do about a failure."""

    WAIT = "wait"  #: the same host again, after a pause
    OTHER_HOST = "other_host"
    AWAIT_HOST = "await_host"  #: another host; where there is none, this one after a pause
    OTHER_CLUSTER = "other_cluster"
    PROBE = "probe"  #: the outcome is unknown: look, then continue
    FATAL = "fatal"  #: no other host would do better
    OTHER_VNI = "other_vni"  #: this one is somebody else's: another one for the network
    QUARANTINE = "quarantine"  #: another VMID; this one waits for the operator


#: names the line for what a host lacks; then the action may be repeated
_DOCTOR = "micronova doctor --fix-lines; {again}"


@dataclass(frozen=True)
class Rule:
    """What one category means."""

    verdict: Verdict
    user: str
    """What the owner of the server reads."""
    operator: str
    """What the operator reads."""
    remedy: str
    """What mends it, where neither the failure itself nor the decision says: with ``{server}``,
    its UUID, ``{log}``, the command that shows the task's log, ``{where}``, where it is run, and
    ``{again}``, that which repeats the action, only where the cause passes by itself or by what
    stands before it."""
    code: int = 500
    """The fault's code (Nova's faults carry an HTTP-like number)."""
    blames_host: bool = False
    """Whether it speaks against the host: other builds avoid it for a while."""


RULES: Mapping[Category, Rule] = {
    Category.API_NOT_SUPPORTED: Rule(
        Verdict.OTHER_HOST,
        "This host can't provision the server in any way it was configured for.",
        "The node's Proxmox version or storage offers no way to the disk; see docs/proxmox.md.",
        _DOCTOR,
        blames_host=True,
    ),
    Category.CONFIGURATION: Rule(
        Verdict.OTHER_HOST,
        "The host is not configured for this server.",
        "Proxmox refused the request as wrong; the message names the parameter or object.",
        _DOCTOR,
        blames_host=True,
    ),
    Category.AUTHORIZATION: Rule(
        Verdict.OTHER_CLUSTER,
        "The cloud is not allowed to do this on the host.",
        "The Proxmox token lacks a privilege; the message names path and privilege.",
        _DOCTOR,
        403,
        blames_host=True,
    ),
    Category.QUOTA_EXCEEDED: Rule(
        Verdict.FATAL,
        "The project's quota is used up.",
        "Quota of the project is used up.",
        "openstack quota show --usage <project>; openstack quota set --instances <number> "
        "<project>",
        403,
    ),
    Category.NO_VALID_HOST: Rule(
        Verdict.FATAL,
        "No host can take the server.",
        "See the decision for each host's reason.",
        "",
    ),
    Category.NODE_UNHEALTHY: Rule(
        Verdict.OTHER_HOST,
        "The host failed.",
        "The node is offline, unreachable or lost quorum.",
        "once the node is back (micronova node list): {again}",
        blames_host=True,
    ),
    Category.IMAGE_NOT_FOUND: Rule(
        Verdict.FATAL,
        "The image is not available.",
        "The import volume is missing.",
        "openstack image list; upload the image again, or take another one",
        404,
    ),
    Category.IMAGE_CORRUPT: Rule(
        Verdict.FATAL,
        "The image is damaged.",
        "The import volume can't be read or differs.",
        "upload the image again, or take another one",
        400,
    ),
    Category.TEMPLATE_LOCKED: Rule(
        Verdict.FATAL,
        "The image's cached copy on the host is locked.",
        "The template carries a lock with no live task; only root@pam can clear it.",
        "micronova doctor --fix-lines",
    ),
    Category.LOCK: Rule(
        Verdict.WAIT,
        "The host is busy.",
        "A lock was not free in time; it is not the host's fault.",
        "{again}",
    ),
    Category.STORAGE_CONFLICT: Rule(
        Verdict.QUARANTINE,
        "Left-over storage was in the way.",
        "A leftover volume has this VMID's names; see the orphans.",
        "micronova audit",
    ),
    Category.STORAGE_FULL: Rule(
        Verdict.OTHER_HOST,
        "The host's storage is full.",
        "The storage has no room for the disk.",
        "{where}pvesm status; free space on the storage that is full, then: {again}",
        blames_host=True,
    ),
    Category.NETWORK: Rule(
        Verdict.OTHER_HOST,
        "The network is not available on the host.",
        "Bridge or vnet is missing on the node, or SDN.Use is not granted.",
        _DOCTOR,
        blames_host=True,
    ),
    Category.TASK_TIMEOUT: Rule(
        Verdict.PROBE,
        "The host did not finish in time.",
        "A Proxmox task outlived its deadline.",
        "{again}",
        blames_host=True,
    ),
    Category.UNKNOWN_OUTCOME: Rule(
        Verdict.PROBE,
        "The host's answer was lost.",
        "A write had no answer; it is being probed.",
        "{again}",
        blames_host=True,
    ),
    Category.CREATION_FAILED: Rule(
        Verdict.OTHER_HOST,
        "The host could not build the server.",
        "The Proxmox task failed.",
        "{log}; mend what it says, then: {again}",
        blames_host=True,
    ),
    Category.VANISHED: Rule(
        Verdict.FATAL,
        "The server's machine is no longer there.",
        "Somebody removed the VM, or gave its VMID to another one. It is not created again.",
        "openstack server delete {server}",
    ),
    Category.PROTECTED: Rule(
        Verdict.FATAL,
        "The server's machine is protected from removal. It was left as it is.",
        "The VM has the option 'protection'; the remedy removes it.",
        "",
        409,
    ),
    Category.MARK_LOST: Rule(
        Verdict.FATAL,
        "The notes of the server's machine were changed, so it can't be proven the server's. It "
        "was left as it is.",
        "Somebody edited the VM's description or SMBIOS UUID; the remedy writes the mark again.",
        "micronova server mark {server}",
        409,
    ),
    Category.FOREIGN: Rule(
        Verdict.FATAL,
        "The server's machine was replaced by another one. That was left as it is.",
        "The VM at the server's VMID is not the server's, by its marks.",
        "micronova server forget {server}",
        409,
    ),
    Category.DISK_LOST: Rule(
        Verdict.FATAL,
        "The server's disk is no longer there. A rebuild makes a new one.",
        "Somebody took the root disk off the VM; it is never started without.",
        "openstack server rebuild {server}",
        409,
    ),
}


#: the command that repeats a failed action
AGAIN: Mapping[str, str] = {
    "start": "openstack server start {server}",
    "stop": "openstack server stop {server}",
    "reboot": "openstack server reboot --hard {server}",
    "reboot-hard": "openstack server reboot --hard {server}",
    "pause": "openstack server pause {server}",
    "unpause": "openstack server unpause {server}",
    "suspend": "openstack server suspend {server}",
    "resume": "openstack server resume {server}",
    "delete": "openstack server delete {server}",
    "soft-delete": "openstack server delete {server}",
    "restore": "openstack server restore {server}",
    "unrescue": "openstack server unrescue {server}",
}


def remedy(failure: Failure, action: str, server_uuid: str) -> str | None:
    """Return what the operator does about a failed action; ``server_uuid`` empty: of no server."""
    if failure.remedy is not None:
        return failure.remedy
    text = RULES[failure.category].remedy
    if not text or (_of_server(text) and not server_uuid):
        return None
    again = AGAIN.get(action, "the action again").format(server=server_uuid)
    log = "micronova doctor"
    if failure.upid is not None:
        log = f"as root on a node of the cluster: pvenode task log {quote(failure.upid)}"
    node = failure.host if failure.upid is None else failure.upid.split(":")[1]
    where = f"as root on {node or 'a node of the cluster'}: "
    return text.format(server=server_uuid, again=again, log=log, where=where)


def _of_server(text: str) -> bool:
    return any(one in text for one in ("{server}", "{log}"))


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


#: verdicts that don't blame the host, of any category
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
