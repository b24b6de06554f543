"""Rows of what groups use: profiles, policies, webhooks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import clock, codec, ids
from common.context import RequestContext
from common.errors import Conflict, NotFound
from conductor.rpc.groups import NewProfile, NewReceiver
from db.reads.groups.groups import POLICIES, PROFILES, RECEIVERS, Kind, Policy, Receiver
from db.schema import (
    scaling_bindings,
    scaling_groups,
    scaling_members,
    scaling_policies,
    scaling_profiles,
    scaling_receivers,
)

_B, _R = scaling_bindings.c, scaling_receivers.c

#: the period in which calls of a webhook are counted
_WINDOW = datetime.timedelta(seconds=60)


def _found(connection: sa.Connection, kind: Kind[Any], one: str, project_id: str | None) -> Any:
    found = kind.get(connection, one, project_id)
    if found is None:
        raise NotFound(f"The {kind.noun} '{one}' could not be found.")
    return found


def _change(
    connection: sa.Connection, table: sa.Table, record_id: str, values: Mapping[str, Any]
) -> None:
    changed = {**values, "updated_at": clock.utcnow()}
    connection.execute(table.update().where(table.c.id == record_id).values(**changed))


# --- profiles


def create_profile(
    connection: sa.Connection, ctxt: RequestContext, new: NewProfile, profile_id: str
) -> str:
    """Write a profile, unless the same call has; return its ID."""
    if PROFILES.get(connection, profile_id, None) is not None:
        return profile_id
    connection.execute(
        scaling_profiles.insert().values(
            id=profile_id,
            project_id=ctxt.project_id,
            user_id=ctxt.user_id,
            name=new.name,
            spec=dict(new.spec),
            request=codec.loads(codec.dumps(new.request)),
            meta=dict(new.metadata),
            created_at=clock.utcnow(),
        )
    )
    return profile_id


def change_profile(
    connection: sa.Connection, profile_id: str, project_id: str | None, values: Mapping[str, Any]
) -> None:
    """Change a profile's name or metadata. Raises NotFound."""
    _found(connection, PROFILES, profile_id, project_id)
    _change(connection, scaling_profiles, profile_id, values)


def delete_profile(connection: sa.Connection, profile_id: str, project_id: str | None) -> None:
    """Delete a profile. Raises NotFound, Conflict while it is used."""
    # Locked: a group that begins to use it at the same time is seen, or finds it gone.
    of = scaling_profiles.c
    connection.execute(sa.select(of.id).where(of.id == profile_id).with_for_update())
    _found(connection, PROFILES, profile_id, project_id)
    former = scaling_groups.c.former_profile_id == profile_id
    uses = (
        sa.select(scaling_groups.c.id).where(
            (scaling_groups.c.profile_id == profile_id) | former & scaling_groups.c.rolling
        ),
        sa.select(scaling_members.c.id).where(scaling_members.c.profile_id == profile_id),
    )
    if any(connection.execute(query.limit(1)).first() is not None for query in uses):
        raise Conflict(
            f"The profile '{profile_id}' cannot be deleted: "
            "still referenced by some clusters and/or nodes."
        )
    connection.execute(scaling_profiles.delete().where(of.id == profile_id))


# --- policies


def create_policy(
    connection: sa.Connection,
    ctxt: RequestContext,
    name: str,
    spec: Mapping[str, Any],
    policy_id: str,
) -> str:
    """Write a policy, unless the same call has; return its ID."""
    if POLICIES.get(connection, policy_id, None) is not None:
        return policy_id
    connection.execute(
        scaling_policies.insert().values(
            id=policy_id,
            project_id=ctxt.project_id,
            user_id=ctxt.user_id,
            name=name,
            spec=dict(spec),
            created_at=clock.utcnow(),
        )
    )
    return policy_id


def policy(connection: sa.Connection, policy_id: str, project_id: str | None) -> Policy:
    """Return a policy. Raises NotFound."""
    found: Policy = _found(connection, POLICIES, policy_id, project_id)
    return found


def rename_policy(
    connection: sa.Connection, policy_id: str, project_id: str | None, name: str
) -> None:
    """Change a policy's name. Raises NotFound."""
    policy(connection, policy_id, project_id)
    _change(connection, scaling_policies, policy_id, {"name": name})


def delete_policy(connection: sa.Connection, policy_id: str, project_id: str | None) -> None:
    """Delete a policy. Raises NotFound, Conflict while it is attached."""
    of = scaling_policies.c
    connection.execute(sa.select(of.id).where(of.id == policy_id).with_for_update())
    policy(connection, policy_id, project_id)
    query = sa.select(_B.id).where(_B.policy_id == policy_id).limit(1)
    if connection.execute(query).first() is not None:
        raise Conflict(
            f"The policy '{policy_id}' cannot be deleted: still attached to some clusters."
        )
    connection.execute(scaling_policies.delete().where(of.id == policy_id))


def bind(connection: sa.Connection, group_id: str, policy_id: str, *, enabled: bool) -> None:
    """Attach a policy to a group."""
    connection.execute(
        scaling_bindings.insert().values(
            id=ids.new_uuid(), group_id=group_id, policy_id=policy_id, enabled=enabled
        )
    )


def enable(connection: sa.Connection, binding_id: str, *, enabled: bool) -> None:
    """Change whether an attached policy counts."""
    connection.execute(
        scaling_bindings.update().where(_B.id == binding_id).values(enabled=enabled)
    )


def unbind(connection: sa.Connection, binding_id: str) -> None:
    """Detach a policy."""
    connection.execute(scaling_bindings.delete().where(_B.id == binding_id))


# --- webhooks


def create_receiver(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Write a webhook."""
    connection.execute(
        scaling_receivers.insert().values(calls=0, created_at=clock.utcnow(), **values)
    )


def row_of(new: NewReceiver) -> dict[str, Any]:
    """Return the columns that a request decides."""
    return {
        "id": new.id,
        "name": new.name,
        "group_id": new.group_id,
        "action": new.action,
        "params": dict(new.params),
        "key_hash": new.key_hash,
        "sealed": new.sealed,
    }


def count_receivers(connection: sa.Connection, group_id: str) -> int:
    """Return how many webhooks a group has."""
    query = sa.select(sa.func.count()).where(_R.group_id == group_id)
    return int(connection.execute(query).scalar_one())


def receiver(connection: sa.Connection, receiver_id: str, project_id: str | None) -> Receiver:
    """Return a webhook. Raises NotFound."""
    found: Receiver = _found(connection, RECEIVERS, receiver_id, project_id)
    return found


def change_receiver(
    connection: sa.Connection, receiver_id: str, project_id: str | None, values: Mapping[str, Any]
) -> None:
    """Change a webhook's name, action or parameters. Raises NotFound."""
    receiver(connection, receiver_id, project_id)
    _change(connection, scaling_receivers, receiver_id, values)


def delete_receiver(connection: sa.Connection, receiver_id: str, project_id: str | None) -> None:
    """Delete a webhook. Raises NotFound."""
    receiver(connection, receiver_id, project_id)
    connection.execute(scaling_receivers.delete().where(_R.id == receiver_id))


def call(connection: sa.Connection, receiver_id: str, most: int) -> Mapping[str, Any] | None:
    """Count a call of a webhook; return its maker's context. None: there were too many."""
    query = sa.select(_R.context, _R.window_at, _R.calls).where(_R.id == receiver_id)
    row = connection.execute(query.with_for_update()).one()
    now = clock.utcnow()
    again = row.window_at is None or now - row.window_at >= _WINDOW
    calls = 1 if again else row.calls + 1
    if calls > most:
        return None
    values: dict[str, Any] = {"calls": calls, "window_at": now if again else row.window_at}
    connection.execute(scaling_receivers.update().where(_R.id == receiver_id).values(values))
    context: Mapping[str, Any] = row.context
    return context
