"""What conductors and agents say to each other of the health of groups' members."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

from common.resources.health_checks import Checks


class CheckResult(enum.StrEnum):
    """What the checks of a member say."""

    WELL = "well"
    SICK = "sick"
    UNKNOWN = "unknown"  #: it can't be checked


@dataclass(frozen=True)
class GuestCheck:
    """A member that is to be checked."""

    server_uuid: str
    name: str
    cluster: str
    node: str
    vmid: int
    address: str
    """Where it is reached; empty: it has no address on a network of the operator's."""
    checks: Checks
    begins_at: datetime.datetime
    """From when on failures count."""
    known: CheckResult | None = None
    """What was reported of it."""


@dataclass(frozen=True)
class GuestHealth:
    """What the checks of a member say now: it is reported when it changes."""

    server_uuid: str
    begins_at: datetime.datetime
    """That of the question: answers to questions from before a repair are ignored."""
    result: CheckResult
    text: str = ""
    """Why it is not well."""
