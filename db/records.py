"""Records that the write and the read side share, and the columns that records are read by."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

import sqlalchemy as sa

from common.resources.states import ResourceType

T = TypeVar("T")


class Record(Protocol):
    """A dataclass whose fields name columns."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


def fields(
    table: sa.Table, record: type[Record], **made: sa.ColumnElement[Any]
) -> dict[str, sa.ColumnElement[Any]]:
    """Return field → what is selected for it, in the record's order.

    That is ``made``'s expression, else the table's column; fields with neither are left out.
    """
    return {
        name: made[name] if name in made else table.c[name]
        for name in record.__dataclass_fields__
        if name in made or name in table.c
    }


def columns(
    table: sa.Table, record: type[Record], **made: sa.ColumnElement[Any]
) -> list[sa.ColumnElement[Any]]:
    """Return what is selected for a record's fields, as ``fields`` does, labelled with them."""
    found = fields(table, record, **made)
    return [one.label(name) if name in made else one for name, one in found.items()]


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a dataclass of a wide row, which only the type checker freezes.

    The fields of a frozen one are set by calls: in a list of servers that takes longer than to
    read them.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@record
class ServerRecord:
    """What both sides read of a server; sizes in MiB and GiB. JSON columns are as written."""

    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    hostname: str
    vm_state: str
    task_state: str | None
    power_state: int
    flavor: Mapping[str, Any]
    image_id: str | None
    """The image that the create named, even where the root disk is a volume."""
    image_properties: Mapping[str, str]
    key_name: str | None
    user_data: str | None
    availability_zone: str | None
    pinned_availability_zone: str | None
    host: str | None
    node: str | None
    meta: Mapping[str, str]
    tags: Sequence[str]
    addresses: Sequence[Mapping[str, Any]]
    scheduler_hints: Mapping[str, Any]
    launch_index: int
    launched_at: datetime.datetime | None
    deleted_at: datetime.datetime | None

    @property
    def volume_backed(self) -> bool:
        """Return whether its root disk is a volume."""
        return bool(self.flavor.get("volume_backed"))


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """What both sides read of an operation: one action on one resource."""

    id: int
    resource_type: str
    resource_id: str
    project_id: str
    user_id: str
    request_id: str
    action: str
    state: str
    attempt: int
    started_at: datetime.datetime

    @property
    def server_uuid(self) -> str:
        """The server that it is about; empty if it is about something else."""
        return self.resource_id if self.resource_type == ResourceType.SERVER else ""


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """The failure of an attempt, or the last failure of an operation on a server."""

    server_uuid: str
    request_id: str
    code: int
    category: str
    message: str
    owner_message: str | None
    """What the owner reads instead of the category's sentence."""
    host: str | None
    upid: str | None
    log_tail: Sequence[str]
    cleaned: Sequence[str]
    left: Sequence[str]
    remedy: str | None
    created_at: datetime.datetime
