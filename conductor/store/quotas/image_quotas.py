"""Quota of images: the sum over existing images, checked and taken under one lock."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from oslo_config import cfg

from common.resources import quotas as options
from conductor.store.quotas import quotas
from db.reads.images import image_usage


def take(
    connection: sa.Connection,
    project_id: str | None,
    conf: cfg.ConfigOpts,
    more: Mapping[str, int],
) -> None:
    """Raise TooLarge unless the project may have this much more, sizes in bytes.

    The project's lock is held until the transaction ends. What operators own has no limit.
    """
    if project_id is None:
        return
    quotas.lock(connection, project_id)
    usage = image_usage.read(connection, project_id)
    usage.require(project_id, options.of_images(conf), more)
