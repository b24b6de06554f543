"""Hosts that are kept for builds that waited long: no other server gets their room."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from conductor.cloud import Cloud
from conductor.store.servers import waiting


def kept_from(
    cloud: Cloud, operation_ids: Collection[int] = (), *, waited: bool = False
) -> Mapping[str, str]:
    """Return the hosts that are kept for others than these operations: UUID → name.

    While this conductor knows of no kept host there is no query; it learns of them every few
    seconds. For a build that has waited (``waited``) it always asks: another conductor may have
    woken the build, and kept a host, just now.
    """
    if not (waited or cloud.news.keeps):
        return {}
    with cloud.store.read() as connection:
        return waiting.kept_from(connection, operation_ids)
