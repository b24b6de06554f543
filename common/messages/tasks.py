"""Tasks of a hypervisor's node, those of all users."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class TaskFacts:
    """One task of a node."""

    id: str
    """The UPID."""
    kind: str
    """What it does: ``qmcreate``, ``vzdump`` …"""
    subject: str
    """What it works on, as a VMID; empty: the node itself."""
    user: str
    """Who began it, with the name of the API token."""
    started_at: datetime.datetime
    finished_at: datetime.datetime | None = None
    """None: it runs."""
    result: str | None = None
    """``OK``, warnings, or why it failed; None: it runs."""
