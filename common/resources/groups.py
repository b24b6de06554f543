"""Scaling groups as data: what a group is asked, how its members are chosen, what it may be.

Names of statuses, policies and options of the clustering API are Senlin's.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.resources import health_checks
from common.resources.health_checks import Checks

#: the maximum size of a group without a limit
UNLIMITED = -1
#: failed creations in a row that stop a group's creations
FAILURES_MOST = 5
#: how often a member's server is repaired before it is replaced
REPAIRS_MOST = 2
#: how long members of a new group wait for room if its config does not say: a day
WAIT_SECONDS = 86_400
#: what an operation's context has of the repair that its user named
REPAIR = "repair"


class GroupAction(enum.StrEnum):
    """Operations about groups. All of them keep the count; the name says why one began."""

    CREATE = "group-create"
    UPDATE = "group-update"
    RESIZE = "group-resize"
    SCALE_OUT = "group-scale-out"
    SCALE_IN = "group-scale-in"
    CHECK = "group-check"
    RECOVER = "group-recover"
    ADD_MEMBERS = "group-add-members"
    TAKE_OUT = "group-take-out"  #: members left the group, or were deleted
    REPLACE_MEMBERS = "group-replace-members"
    POLICY = "group-policy"  #: a policy was attached, changed or detached
    STEER = "group-steer"  #: a rolling update was paused, resumed or reverted
    KEEP = "group-keep"  #: something happened to a member
    DELETE = "group-delete"


class MemberState(enum.StrEnum):
    """What a group wants of one of its members."""

    KEPT = "kept"  #: a server that works
    REPLACED = "replaced"  #: another server in the same place, once this one is gone
    LEAVING = "leaving"  #: neither server nor place


class Status(enum.StrEnum):
    """The status of a group, as clients of the clustering API know it."""

    CREATING = "CREATING"
    RESIZING = "RESIZING"
    UPDATING = "UPDATING"
    CHECKING = "CHECKING"
    RECOVERING = "RECOVERING"
    DELETING = "DELETING"
    ACTIVE = "ACTIVE"  #: as many members as desired work
    WARNING = "WARNING"  #: fewer, but as many as the minimum
    ERROR = "ERROR"  #: fewer than the minimum


#: what a group shows while an operation is open
WHILE: Mapping[GroupAction, Status] = {
    GroupAction.CREATE: Status.CREATING,
    GroupAction.UPDATE: Status.UPDATING,
    GroupAction.STEER: Status.UPDATING,
    GroupAction.REPLACE_MEMBERS: Status.UPDATING,
    GroupAction.CHECK: Status.CHECKING,
    GroupAction.RECOVER: Status.RECOVERING,
    GroupAction.KEEP: Status.RECOVERING,
    GroupAction.DELETE: Status.DELETING,
}


class Keep(enum.StrEnum):
    """What of a member's server can belong to its place."""

    VOLUMES = "volumes"
    PORTS = "ports"

    @property
    def noun(self) -> str:
        """Return the word for one of them."""
        return self.value.removesuffix("s")


class First(enum.StrEnum):
    """Which members leave first, after the sick and the crowded; Senlin's names."""

    OLDEST = "OLDEST_FIRST"
    YOUNGEST = "YOUNGEST_FIRST"
    OLDEST_PROFILE = "OLDEST_PROFILE_FIRST"
    RANDOM = "RANDOM"


class Repair(enum.StrEnum):
    """What is done with a member whose server is not well; Senlin's names."""

    REBOOT = "REBOOT"  #: started, or restarted
    REBUILD = "REBUILD"  #: it gets a new disk of its image
    RECREATE = "RECREATE"  #: it is deleted, and another one takes its place


@dataclass(frozen=True)
class Options:
    """How a group works, from its ``config``."""

    at_once: int = 4
    """How many of its servers may be in creation."""
    max_surge: int = 1
    """By how many servers it may exceed its size, while members are replaced."""
    max_unavailable: int = 0
    """How many members less than desired may work, while others are replaced."""
    min_ready_seconds: int = 0
    """How long a new member has to work before it counts."""
    wait_seconds: int | None = None
    """How long members that find no room wait for it; 0: their creation fails; None: as groups
    did when this one was made."""
    shrink: bool = False
    """Whether a member that its user deletes is not replaced: one less is desired."""
    roll_back: bool = True
    """Whether a rolling update whose new members do not work is reverted."""
    zones: tuple[str, ...] = ()
    """The zones that members are spread over; none: as the profile says."""
    clusters: tuple[str, ...] = ()
    """The clusters of Proxmox VE that members are spread over; none: as schedulers choose."""
    keep: tuple[Keep, ...] = ()
    """What each server of a place has of the former one; members are replaced in their places."""
    health_agent: bool = False
    """Whether the guest's agent of a member has to answer."""
    health_tcp_port: int = 0
    """A port that has to take connections; 0: none."""
    health_url: str = ""
    """What has to answer: ``http://{nodename}:8080/health``; empty: nothing."""
    health_interval: int = 60
    """Seconds between two checks."""
    health_threshold: int = 3
    """How many checks in a row fail before a member is not well."""
    health_grace: int = 300
    """For how many seconds failures don't count after a server has begun to run."""


#: name in a group's ``config`` → the field of Options
CONFIG: Mapping[str, str] = {
    f"micronova.{name}": name
    for name in (
        *("at_once", "max_surge", "max_unavailable", "min_ready_seconds"),
        *("wait_seconds", "shrink", "roll_back", "zones", "clusters", "keep"),
        *("health_agent", "health_tcp_port", "health_url"),
        *("health_interval", "health_threshold", "health_grace"),
    )
}
#: zones, or clusters, whose numbers of servers differ by so many are evened out
UNEVEN = 2
#: the zones that a group is spread over
ZONES = "micronova.zones"
#: the clusters of Proxmox VE that it is spread over
CLUSTERS = "micronova.clusters"
#: name → (least, most) of those that are numbers
LIMITS: Mapping[str, tuple[int, int]] = {
    "at_once": (1, 50),
    "max_surge": (0, 100),
    "max_unavailable": (0, 100),
    "min_ready_seconds": (0, 3600),
    "wait_seconds": (0, 86_400),
    "health_tcp_port": (0, 65_535),
    "health_interval": (5, 3600),
    "health_threshold": (1, 20),
    "health_grace": (0, 86_400),
}


def options(config: Mapping[str, Any]) -> Options:
    """Return how a group works by its config, whose other keys mean nothing here.

    Values may be text, as command lines send them. Raises ValueError with a sentence.
    """
    found = {
        field: _value(field, name, config[name])
        for name, field in CONFIG.items()
        if name in config
    }
    unknown = [name for name in config if name.startswith("micronova.") and name not in CONFIG]
    if unknown:
        raise ValueError(f"There is no option {unknown[0]}; there are {', '.join(CONFIG)}.")
    made = _in_place(Options(**found), config)
    if not made.max_surge and not made.max_unavailable:
        raise ValueError(
            "micronova.max_surge and micronova.max_unavailable can't both be 0: "
            "no member could be replaced."
        )
    return made


def _in_place(made: Options, config: Mapping[str, Any]) -> Options:
    """Return options with members replaced in their places, where something belongs to those: a
    place never has two servers at once. Raises ValueError for options that ask for that."""
    if not made.keep:
        return made
    if made.max_surge and "micronova.max_surge" in config:
        raise ValueError(
            f"micronova.max_surge must be 0 with micronova.keep: a {made.keep[0].noun} "
            "can't be attached to two servers."
        )
    if not made.max_unavailable and "micronova.max_unavailable" in config:
        raise ValueError("micronova.max_unavailable must be at least 1 with micronova.keep.")
    return dataclasses.replace(made, max_surge=0, max_unavailable=max(1, made.max_unavailable))


def _value(field: str, name: str, given: Any) -> Any:
    if field in LIMITS:
        least, most = LIMITS[field]
        text = str(given)
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        if not least <= number <= most:
            raise ValueError(f"{name} must be a number from {least} to {most}.")
        return number
    if field == "keep":
        return _kept(name, given)
    if field in ("zones", "clusters"):
        names = given.split(",") if isinstance(given, str) else given
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise ValueError(f"{name} must be names of {field}, with commas between them.")
        return tuple(dict.fromkeys(one.strip() for one in names if one.strip()))
    if field == "health_url":
        if given:
            health_checks.parsed(str(given), "x")
        return str(given or "")
    if str(given).lower() not in {"true", "false"}:
        raise ValueError(f"{name} must be true or false.")
    return str(given).lower() == "true"


def _kept(name: str, given: Any) -> tuple[Keep, ...]:
    """Return the kinds that belong to places. Raises ValueError with a sentence."""
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ValueError(f"{name} must be {', '.join(Keep)}, or empty.")
    wanted = list(dict.fromkeys(one.strip() for one in names if one.strip()))
    for one in wanted:
        if one not in [*Keep]:
            raise ValueError(f"{name} can't have {one!r}; it can have {' and '.join(Keep)}.")
    return tuple(Keep(one) for one in wanted)


@dataclass(frozen=True)
class Deletion:
    """Which members leave first when a group shrinks."""

    first: First = First.OLDEST_PROFILE
    destroy: bool = True
    """Whether their servers are deleted; else they leave the group."""


@dataclass(frozen=True)
class Health:
    """How members whose servers are not well are repaired."""

    repairs: tuple[Repair, ...] = (Repair.RECREATE,)
    """One after the other, until one helps; the last is followed by ``RECREATE``."""


DELETION_TYPE = "senlin.policy.deletion"
HEALTH_TYPE = "senlin.policy.health"


def deletion(spec: Mapping[str, Any] | None) -> Deletion:
    """Return the deletion policy of a checked spec; None: none is attached."""
    properties = (spec or {}).get("properties", {})
    return Deletion(
        First(properties.get("criteria", First.OLDEST_PROFILE if spec is None else First.RANDOM)),
        bool(properties.get("destroy_after_deletion", True)),
    )


def checks(options: Options, spec: Mapping[str, Any] | None) -> Checks:
    """Return how members are checked, by a group's options and its checked health policy."""
    seconds = options.health_interval
    found = Checks(
        agent=options.health_agent,
        tcp_port=options.health_tcp_port,
        url=options.health_url,
        interval_seconds=seconds,
        retry_seconds=seconds,
        threshold=options.health_threshold,
        grace_seconds=options.health_grace,
    )
    detection = (spec or {}).get("properties", {}).get("detection") or {}
    return health_checks.with_policy(found, detection)


def health(spec: Mapping[str, Any] | None) -> Health:
    """Return the health policy of a checked spec; None: none is attached."""
    recovery = (spec or {}).get("properties", {}).get("recovery", {})
    named = [Repair(one["name"]) for one in recovery.get("actions", ())]
    return Health(tuple(named) or (Repair.RECREATE,))
