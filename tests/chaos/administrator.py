"""What an administrator does after a failure."""

from __future__ import annotations

import sqlalchemy as sa

from db import schema
from tests.chaos.cloud import Cloud


def reset(cloud: Cloud) -> None:
    """As an administrator does after a failure: back to the status before, and away with copies
    that failed."""
    client, context = cloud.client, cloud.context()
    query = sa.select(schema.volume_attachments.c.volume_id)
    attached = {row.volume_id for row in cloud.rows(query)}
    for row in cloud.rows(sa.select(schema.volumes)):
        if row.status.startswith("error"):
            client.reset_volume(context, row.id, "in-use" if row.id in attached else "available")
    for row in cloud.rows(sa.select(schema.volume_snapshots)):
        if row.status == "error":
            client.delete_volume_snapshot(context, row.id)
    for row in cloud.rows(sa.select(schema.volume_backups)):
        if row.status == "error":
            client.delete_backup(context, row.id, force=True)
