"""`/bulk-migrations` and `/drains/{host}`: many servers' migrations in one operation.

These resources are micronova's own, for administrators.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import bulk_migrations as schemas
from common import clock, digits
from common.errors import NotFound
from common.resources.bulk_migrations import UNDER_WAY, Move, Steering, sentence
from db.reads.ledger import bulk_migrations as reads
from db.reads.ledger.bulk_migrations import BulkMigration

_MAX_ID = 2**63 - 1
_AT_ONCE = 2
_MOVES = 10


class BulkMigrations:
    """Drains and rebalances."""

    @operation(policies.BULK_MIGRATIONS_BEGIN, status=202, body=schemas.CREATE)
    def create(self, call: Call) -> Any:
        """Drain a host, or rebalance the cloud; its progress is shown under its ID."""
        ((kind, asked),) = call.body["bulk_migration"].items()
        at_once = asked.get("at_once", _AT_ONCE)
        if kind == "drain":
            more = {name: asked[name] for name in ("live_only", "wait_seconds") if name in asked}
            more.setdefault("live_only", False)
            number = call.conductor.drain(call.ctxt, asked["host"], at_once, **more)
        else:
            limit = asked.get("limit", _MOVES)
            number = call.conductor.apply_rebalance(call.ctxt, limit, at_once)
        return {"bulk_migration": {"id": number}}

    @operation(policies.BULK_MIGRATIONS_READ, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List the last ones, newest first, without their moves; with `host` its drains."""
        limit, _ = call.query.page(call.max_limit)
        found = call.read(reads.newest, limit, call.query.last("host"))
        return {"bulk_migrations": [_head(one) for one in found]}

    @operation(policies.BULK_MIGRATIONS_READ)
    def show(self, call: Call, number: str) -> Any:
        """Show one with its moves."""
        found = call.read(reads.find, _number(number))
        if found is None:
            raise _unknown(number)
        going = {
            one.operation_id for one in found.moves if one.state in UNDER_WAY and one.operation_id
        }
        stages = call.read(reads.stages, going)
        moves = [_move(one, stages) for one in found.moves]
        return {"bulk_migration": {**_head(found), "moves": moves}}

    @operation(policies.BULK_MIGRATIONS_STEER, status=202, body=schemas.steering("pause"))
    def pause(self, call: Call, number: str) -> None:
        """Begin no more moves for now; those under way end."""
        call.conductor.set_bulk_migration_state(call.ctxt, _number(number), Steering.PAUSE)

    @operation(policies.BULK_MIGRATIONS_STEER, status=202, body=schemas.steering("resume"))
    def resume(self, call: Call, number: str) -> None:
        """Resume a paused bulk migration."""
        call.conductor.set_bulk_migration_state(call.ctxt, _number(number), Steering.GO)

    @operation(policies.BULK_MIGRATIONS_STEER, status=202, body=schemas.steering("cancel"))
    def cancel(self, call: Call, number: str) -> None:
        """Begin no more moves; finish those under way. A drained host remains disabled."""
        call.conductor.set_bulk_migration_state(call.ctxt, _number(number), Steering.CANCEL)


class Drains:
    """What a drain would do."""

    @operation(policies.BULK_MIGRATIONS_READ, query=schemas.PLAN)
    def show(self, call: Call, host: str) -> Any:
        """Show how each server would leave a host now, or why it can't; nothing moves."""
        live_only = call.query.boolean("live_only")
        found = call.conductor.drain_plan(call.ctxt, host, live_only=bool(live_only))
        servers = [dataclasses.asdict(one) for one in found]
        for one in servers:
            one["server"] = one.pop("server_uuid")
        return {"drain": {"host": host, "servers": servers}}


def _number(text: str) -> int:
    number = digits.number(text, _MAX_ID)
    if number is None:
        raise _unknown(text)
    return number


def _unknown(number: str) -> NotFound:
    return NotFound(f"Bulk migration {number} could not be found.")


def _head(one: BulkMigration) -> dict[str, Any]:
    values = {
        name: value
        for name, value in vars(one).items()
        if name not in {"moves", "steering", "started_at", "updated_at", "finished_at"}
    }
    return {
        **values,
        "message": one.message or sentence(one.moves),
        "asked": one.steering,
        "servers": len(one.moves),
        "started_at": clock.iso(one.started_at),
        "updated_at": clock.iso(one.updated_at),
        "finished_at": clock.iso(one.finished_at),
    }


def _move(move: Move, stages: Mapping[int, str]) -> dict[str, Any]:
    values = dataclasses.asdict(move)
    values["server"] = values.pop("server_uuid")
    values |= {name: clock.iso(values[name]) for name in ("not_before", "waits_since")}
    values["stage"] = stages.get(move.operation_id or 0)
    return values
