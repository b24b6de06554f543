"""Limits of what projects make through the Network API, checked under the project's lock."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from common.errors import Conflict
from common.resources.quotas import UNLIMITED
from conductor.store.quotas import quotas
from db.reads.networks import networks


def take(
    connection: sa.Connection, kind: str, owners: Iterable[str], defaults: Mapping[str, int]
) -> None:
    """Raise Conflict if a project may not have so many more; others wait for this transaction.

    ``owners``: the project of each that is to be made; ``defaults``: limits of projects without
    limits of their own.
    """
    for project_id, more in sorted(collections.Counter(owners).items()):
        limit = quotas.locked(connection, project_id, defaults)[kind]
        if limit != UNLIMITED and networks.count(connection, kind, project_id) + more > limit:
            raise Conflict(f"Quota exceeded for resources: ['{kind}'].", type="OverQuota")


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return how many of each kind a project has. One statement."""
    return networks.usage(connection, project_id)
