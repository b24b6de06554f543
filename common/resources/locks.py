"""Locks of servers: who holds one, and whom it stops."""

from __future__ import annotations

import enum

from common.errors import ServerLocked


class LockedBy(enum.StrEnum):
    """Who locked a server, as Nova distinguishes."""

    OWNER = "owner"  #: somebody of the server's own project
    ADMIN = "admin"  #: somebody of another project, who must be an administrator


def locker(server_project: str, project_id: str | None) -> LockedBy:
    """Return as whom a request of ``project_id`` locks a server of ``server_project``."""
    return LockedBy.OWNER if project_id == server_project else LockedBy.ADMIN


def check(server_uuid: str, locked_by: str | None, *, is_admin: bool) -> None:
    """Raise ServerLocked where the server is locked; a lock stops no administrator."""
    if locked_by is not None and not is_admin:
        raise ServerLocked(f"Instance {server_uuid} is locked", server_uuid=server_uuid)
