"""Imports of images: staged data that wait to be imported, and downloads in progress.

Neither is an operation until the data are complete: an abandoned import or download expires.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import sqlalchemy as sa

from common import clock, codec, ids
from common.context import RequestContext
from common.errors import Conflict
from common.resources.states import OPEN_STATES, ResourceType
from conductor.rpc.images import DIRECT, DOWNLOAD, ImageData, ImportTask
from conductor.store.images.server_images import QUEUED
from db.schema import images, operations

UPLOADING, IMPORTING = "uploading", "importing"
_C = images.c


def stage(connection: sa.Connection, ctxt: RequestContext, row: Any, data: ImageData) -> None:
    """Record that the data of a locked image are staged. Raises Conflict."""
    if row.status != QUEUED:
        raise Conflict(f"Image status transition from {row.status} to uploading is not allowed")
    if row.disk_format != data.disk_format:
        raise Conflict(f"The disk_format of image {row.id} was changed during the upload.")
    task = _task(ctxt, DIRECT, staged=data)
    kept = dataclasses.asdict(task)
    _write(connection, row.id, status=UPLOADING, size_bytes=data.size_bytes, import_task=kept)


def begin_staged(connection: sa.Connection, ctxt: RequestContext, row: Any) -> ImageData:
    """Return what was staged of an image that is locked, and write who imports it.

    Its status is the caller's to change. Raises Conflict.
    """
    task = task_of(row)
    if row.status != UPLOADING or task is None or task.staged is None:
        raise Conflict("Image needs to be staged before 'glance-direct' method can be used")
    now = dataclasses.replace(
        task, staged=None, user_id=str(ctxt.user_id), request_id=str(ctxt.request_id)
    )
    _write(connection, row.id, import_task=dataclasses.asdict(now))
    return task.staged


def begin_download(connection: sa.Connection, ctxt: RequestContext, row: Any, uri: str) -> str:
    """Write that the data of an image that is locked are downloaded; return the task's id.

    Raises Conflict.
    """
    if row.status != QUEUED:
        raise Conflict("Image needs to be in 'queued' state to use 'web-download' method")
    task = _task(ctxt, DOWNLOAD, uri=uri)
    _write(connection, row.id, status=IMPORTING, import_task=dataclasses.asdict(task))
    return task.id


def renew(connection: sa.Connection, row: Any, task_id: str) -> None:
    """Record progress in downloading a locked image. Raises Conflict as ``require``."""
    require(row, task_id)
    _write(connection, row.id)


def fail(connection: sa.Connection, row: Any, task_id: str, why: str) -> None:
    """Record that downloading a locked image has failed. Raises Conflict as ``require``."""
    _end(connection, row, require(row, task_id), why)


def expire(
    connection: sa.Connection, staged_before: datetime.datetime, renewed_before: datetime.datetime
) -> list[str]:
    """End imports staged, and downloads last reported, before these times.

    Return the images' ids.
    """
    saved = sa.exists().where(
        operations.c.resource_type == ResourceType.IMAGE,
        operations.c.resource_id == _C.id,
        operations.c.state.in_(OPEN_STATES),
    )
    query = sa.select(images).where(
        sa.or_(
            (_C.status == UPLOADING) & (_C.updated_at < staged_before),
            (_C.status == IMPORTING) & (_C.updated_at < renewed_before) & ~saved,
        )
    )
    rows = connection.execute(query.order_by(_C.id).with_for_update()).all()
    for row in rows:
        task = task_of(row)
        what = "staged data were not imported in time"
        if row.status == IMPORTING:
            what = "process that downloaded the data has ended"
        _end(connection, row, task or ImportTask("", "", "", ""), f"The {what}.")
    return [row.id for row in rows]


def task_of(row: Any) -> ImportTask | None:
    """Return the last import of an image; None: there was none."""
    return None if row.import_task is None else codec.load(ImportTask, row.import_task)


def require(row: Any, task_id: str) -> ImportTask:
    """Return the download of a locked image. Raises Conflict unless it is in progress."""
    task = task_of(row)
    if row.status != IMPORTING or task is None or task.id != task_id:
        raise Conflict(f"Image {row.id} is not being downloaded any more.")
    return task


def _task(ctxt: RequestContext, method: str, **more: Any) -> ImportTask:
    return ImportTask(ids.new_uuid(), method, str(ctxt.user_id), str(ctxt.request_id), **more)


def _end(connection: sa.Connection, row: Any, task: ImportTask, why: str) -> None:
    ended = dataclasses.replace(task, staged=None, message=why)
    kept = dataclasses.asdict(ended)
    _write(connection, row.id, status=QUEUED, size_bytes=0, import_task=kept)


def _write(connection: sa.Connection, image_id: str, **values: Any) -> None:
    changed = images.update().where(_C.id == image_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))
