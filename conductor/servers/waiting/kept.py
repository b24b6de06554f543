"""Hosts that are kept for builds that waited long: no other server gets their room."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from conductor.cloud import Cloud
from conductor.store.servers import waiting


def kept_from(
    cloud: Cloud, operation_ids: Collection[int] = (), *, waited: bool = False
) -> Mapping[str, str]:
    """Return the hosts that are kept for others than these operations: UUID → name.

    No query while this conductor knows of none; it looks again every few seconds. A build that
    waited (``waited``) may have been woken by another conductor, which has just kept a host.
    """
    if not (waited or cloud.news.keeps):
        return {}
    with cloud.store.read() as connection:
        return waiting.kept_from(connection, operation_ids)
