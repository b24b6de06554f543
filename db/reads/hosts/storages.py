"""Storages as hosts see them, a shared one once."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from common import codec
from common.messages.facts import StorageFacts
from db import schema

_HOSTS = schema.hosts.c


@dataclass(frozen=True)
class Storage:
    """One storage of a cluster, or of a node if it isn't shared."""

    cluster: str
    node: str
    """Empty: it is shared."""
    host: str
    """A host that sees it, where it is active if that is so anywhere."""
    hosts: int
    """How many see it."""
    facts: StorageFacts

    @property
    def id(self) -> str:
        """Its name in the cloud."""
        return "/".join(filter(None, (self.cluster, self.node, self.facts.name)))


def read(connection: sa.Connection, host: str | None = None) -> list[Storage]:
    """Return the storages of all hosts that are on, or of one, by cluster, name and node.

    One query.
    """
    facts = _HOSTS.facts
    query = sa.select(
        *(
            _HOSTS.host,
            _HOSTS.cluster,
            _HOSTS.node,
            facts["storages"],
            facts["online"].as_boolean(),
        )
    ).order_by(_HOSTS.host)
    found: dict[tuple[str, str, str], Storage] = {}
    seen_by: dict[tuple[str, str, str], set[str]] = {}
    for name, cluster, node, storages, online in connection.execute(query):
        if online is False:
            continue
        for plain in storages or ():
            one = codec.load(StorageFacts, plain)
            key = (cluster, one.name, "" if one.shared else node)
            seen_by.setdefault(key, set()).add(name)
            known = found.get(key)
            if known is None or (one.active and not known.facts.active):
                found[key] = Storage(cluster, key[2], name, 0, one)
    return [
        Storage(one.cluster, one.node, one.host, len(seen_by[key]), one.facts)
        for key, one in sorted(found.items(), key=lambda pair: pair[0])
        if host is None or host in seen_by[key]
    ]
