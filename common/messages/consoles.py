"""Consoles of servers: what is asked of the conductor, and of the agent that opens one."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass


class ConsoleType(enum.StrEnum):
    """The consoles that there are, by Nova's names."""

    NOVNC = "novnc"
    SERIAL = "serial"


@dataclass(frozen=True)
class ConsoleTarget:
    """One console of one server, and where its VM is."""

    server_uuid: str
    type: ConsoleType
    worker: str
    """Carries the agent of the VM's host."""
    cluster: str
    node: str
    vmid: int


def token_hash(token: str) -> str:
    """Return what is stored of a token: it opens nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
