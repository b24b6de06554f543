"""The RPC endpoint of scaling groups."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from common import clock, ids
from common.context import RequestContext
from common.errors import Conflict, Invalid, NotFound, QuotaExceeded
from common.log import logger
from common.resources.groups import GroupAction, Repair
from common.resources.states import OperationState
from common.rpc import deadlines
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.engine.runner import Runner
from conductor.rpc.groups import GroupChanges, NewGroup, NewProfile, NewReceiver, Resize
from conductor.servers.accept import Accept
from conductor.servers.create.begin_create import CreateAcceptance
from conductor.servers.groups import begin_group, seen
from conductor.servers.groups.begin_group import AlreadyBegun
from conductor.servers.groups.repairs import Repairs
from conductor.store.groups import catalog
from conductor.store.groups import groups as store
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)

T = TypeVar("T")

#: calls of one webhook in a minute
CALLS_MOST = 30
#: webhooks of one group
RECEIVERS_MOST = 20
#: a webhook's action → the operation, and which way it changes the size
SCALINGS: Mapping[str, tuple[GroupAction, int]] = {
    "CLUSTER_SCALE_OUT": (GroupAction.SCALE_OUT, 1),
    "CLUSTER_SCALE_IN": (GroupAction.SCALE_IN, -1),
}
_TENDS: Mapping[str, GroupAction] = {
    "CLUSTER_CHECK": GroupAction.CHECK,
    "CLUSTER_RECOVER": GroupAction.RECOVER,
}


class GroupEndpoint:
    """See ``conductor.rpc.groups.GroupRpc``."""

    def __init__(self, cloud: Cloud, runner: Runner) -> None:
        self._cloud, self._runner = cloud, runner
        self._accept = Accept(cloud)
        self._creates = CreateAcceptance(cloud)
        self._repairs = Repairs(cloud)

    def _do(self, work: Callable[[Transaction], T]) -> T:
        return self._cloud.store.run(work)

    def _begin(self, work: Callable[[Transaction], Operation]) -> int:
        try:
            operation = self._do(work)
        except AlreadyBegun as before:
            return before.number
        LOG.info("%s begins: operation %d.", operation.title, operation.id)
        if operation.state != OperationState.DONE:
            self._runner.submit(operation)
        return operation.id

    # --- profiles

    def create_profile(self, ctxt: RequestContext, profile: NewProfile) -> str:
        # The same one however often the transaction is tried, or the call comes.
        made = deadlines.new_uuid()
        return self._do(lambda c: catalog.create_profile(c, ctxt, profile, made))

    def change_profile(
        self, ctxt: RequestContext, profile_id: str, values: Mapping[str, Any]
    ) -> None:
        _check(values, {"name", "meta"})
        self._do(lambda c: catalog.change_profile(c, profile_id, scope(ctxt), values))

    def delete_profile(self, ctxt: RequestContext, profile_id: str) -> None:
        self._do(lambda c: catalog.delete_profile(c, profile_id, scope(ctxt)))

    # --- groups

    def create_group(self, ctxt: RequestContext, group: NewGroup) -> tuple[str, int]:
        made = deadlines.new_uuid()

        def work(connection: Transaction) -> Operation:
            return begin_group.create(self._cloud, connection, ctxt, group, made)[1]

        return made, self._begin(work)

    def change_group(self, ctxt: RequestContext, group_id: str, changes: GroupChanges) -> int:
        return self._begin(lambda c: begin_group.change(self._cloud, c, ctxt, group_id, changes))

    def resize_group(self, ctxt: RequestContext, group_id: str, resize: Resize) -> int:
        return self._begin(lambda c: begin_group.resize(self._cloud, c, ctxt, group_id, resize))

    def tend_group(self, ctxt: RequestContext, group_id: str, action: str) -> int:
        if action not in (GroupAction.CHECK, GroupAction.RECOVER):
            raise Invalid(f"{action} does not look at members.")
        kind = GroupAction(action)
        return self._begin(lambda c: begin_group.tend(self._cloud, c, ctxt, group_id, kind))

    def repair_group(self, ctxt: RequestContext, group_id: str, repair: str) -> int:
        kind, way = GroupAction.RECOVER, Repair(repair)
        return self._begin(lambda c: begin_group.tend(self._cloud, c, ctxt, group_id, kind, way))

    def steer_group(self, ctxt: RequestContext, group_id: str, verb: str) -> int:
        if verb not in ("pause", "resume", "roll_back"):
            raise Invalid(f"{verb} does not steer an update.")
        return self._begin(lambda c: begin_group.steer(self._cloud, c, ctxt, group_id, verb))

    def delete_group(self, ctxt: RequestContext, group_id: str, *, keep: bool) -> int:
        return self._begin(lambda c: begin_group.delete(self._cloud, c, ctxt, group_id, keep=keep))

    # --- members

    def add_members(self, ctxt: RequestContext, group_id: str, members: Sequence[str]) -> int:
        return self._begin(
            lambda c: begin_group.add_members(self._cloud, c, ctxt, group_id, members)
        )

    def take_members_out(
        self, ctxt: RequestContext, group_id: str, members: Sequence[str], *, destroy: bool
    ) -> int:
        return self._begin(
            lambda c: begin_group.take_out(
                self._cloud, c, ctxt, group_id, members, destroy=destroy
            )
        )

    def replace_members(
        self, ctxt: RequestContext, group_id: str, members: Mapping[str, str]
    ) -> int:
        return self._begin(lambda c: begin_group.replace(self._cloud, c, ctxt, group_id, members))

    def create_member(
        self, ctxt: RequestContext, name: str, profile_id: str, metadata: Mapping[str, Any]
    ) -> str:
        row = begin_group.new_standalone(ctxt, name, profile_id)

        def work(connection: Transaction) -> Operation | None:
            if store.has_member(connection, str(row["id"])):
                return None
            request = store.profile_of(connection, profile_id)
            if request is None:
                raise NotFound(f"The profile '{profile_id}' could not be found.")
            named = {**request.metadata, "cluster_node_id": row["id"]}
            asked = dataclasses.replace(request, name=name, metadata=named)
            operation = self._creates.accept(connection, ctxt, asked)
            uuid = operation.server_uuid
            store.add(connection, [{**row, "meta": dict(metadata), "server_uuid": uuid}])
            return operation

        operation = self._do(work)
        if operation is not None:
            self._runner.submit(operation)
        return str(row["id"])

    def change_member(
        self, ctxt: RequestContext, member_id: str, values: Mapping[str, Any]
    ) -> None:
        _check(values, {"name", "role", "meta"})

        def work(connection: Transaction) -> None:
            store.member(connection, member_id, scope(ctxt))
            store.change_member(connection, member_id, **values, updated_at=clock.utcnow())

        self._do(work)

    def delete_member(self, ctxt: RequestContext, member_id: str) -> int:
        with self._cloud.store.read() as connection:
            member = store.member(connection, member_id, scope(ctxt))
        if member.group_id is not None:
            group_id = member.group_id
            return self.take_members_out(ctxt, group_id, [member_id], destroy=True)
        operation = None
        if member.server_uuid is not None and member.deleted_at is None:
            operation = self._accept.act(ctxt, member.server_uuid, "delete")
        self._do(lambda c: store.remove(c, [member_id]))
        if operation is None:
            return 0
        self._runner.submit(operation)
        return operation.id

    def recover_member(self, ctxt: RequestContext, member_id: str) -> int:
        return self._begin(lambda c: begin_group.recover_member(self._cloud, c, ctxt, member_id))

    def repair_member(
        self,
        ctxt: RequestContext,
        member_id: str,
        repair: str,
        *,
        soft: bool = False,
        check: bool = False,
    ) -> int:
        way = Repair(repair)
        if way == Repair.RECREATE:
            recover = begin_group.recover_member
            return self._begin(lambda c: recover(self._cloud, c, ctxt, member_id, check=check))
        with self._cloud.store.read() as connection:
            member = store.member(connection, member_id, scope(ctxt))
        if check and seen.is_left_alone(member):
            group_id = member.group_id
            return 0 if group_id is None else self.tend_group(ctxt, group_id, GroupAction.CHECK)
        operation = self._repairs.asked(ctxt, member, way, soft=soft)
        if operation is None:
            return 0
        self._runner.submit(operation)
        return operation.id

    # --- policies

    def create_policy(self, ctxt: RequestContext, name: str, spec: Mapping[str, Any]) -> str:
        made = deadlines.new_uuid()
        return self._do(lambda c: catalog.create_policy(c, ctxt, name, spec, made))

    def change_policy(self, ctxt: RequestContext, policy_id: str, name: str) -> None:
        self._do(lambda c: catalog.rename_policy(c, policy_id, scope(ctxt), name))

    def delete_policy(self, ctxt: RequestContext, policy_id: str) -> None:
        self._do(lambda c: catalog.delete_policy(c, policy_id, scope(ctxt)))

    def bind_policy(
        self, ctxt: RequestContext, group_id: str, policy_id: str, *, enabled: bool, new: bool
    ) -> int:
        def work(connection: Transaction) -> Operation:
            which = (self._cloud, connection, ctxt, group_id, GroupAction.POLICY)
            _, operation = begin_group.begin(*which)
            policy = catalog.policy(connection, policy_id, scope(ctxt))
            bound = store.bound(connection, group_id)
            there = next((one for one in bound if one.policy_id == policy_id), None)
            if not new and there is None:
                raise Invalid(f"The policy '{policy_id}' is not attached to the cluster.")
            if there is not None:
                catalog.enable(connection, there.id, enabled=enabled)
                return operation
            if any(one.spec["type"] == policy.type for one in bound):
                raise Conflict(f"There is already a policy of type ({policy.type}) attached.")
            catalog.bind(connection, group_id, policy_id, enabled=enabled)
            return operation

        return self._begin(work)

    def unbind_policy(self, ctxt: RequestContext, group_id: str, policy_id: str) -> int:
        def work(connection: Transaction) -> Operation:
            which = (self._cloud, connection, ctxt, group_id, GroupAction.POLICY)
            _, operation = begin_group.begin(*which)
            bound = store.bound(connection, group_id)
            there = next((one for one in bound if one.policy_id == policy_id), None)
            if there is None:
                raise Invalid(f"The policy '{policy_id}' is not attached to the cluster.")
            catalog.unbind(connection, there.id)
            return operation

        return self._begin(work)

    # --- webhooks

    def create_receiver(self, ctxt: RequestContext, receiver: NewReceiver) -> None:
        def work(connection: Transaction) -> None:
            group = begin_group.locked(connection, ctxt, receiver.group_id)
            used = catalog.count_receivers(connection, group.id)
            if used >= RECEIVERS_MOST:
                raise QuotaExceeded(
                    f"A cluster has at most {RECEIVERS_MOST} receivers.",
                    resource="receivers",
                    limit=RECEIVERS_MOST,
                    used=used,
                    requested=1,
                )
            whose = {"project_id": group.project_id, "user_id": ctxt.user_id}
            context = {**begin_group.context_of(ctxt), "project_id": group.project_id}
            catalog.create_receiver(
                connection, {**catalog.row_of(receiver), **whose, "context": context}
            )

        self._do(work)

    def change_receiver(
        self, ctxt: RequestContext, receiver_id: str, values: Mapping[str, Any]
    ) -> None:
        _check(values, {"name", "action", "params"})
        self._do(lambda c: catalog.change_receiver(c, receiver_id, scope(ctxt), values))

    def delete_receiver(self, ctxt: RequestContext, receiver_id: str) -> None:
        self._do(lambda c: catalog.delete_receiver(c, receiver_id, scope(ctxt)))

    def trigger_receiver(
        self, ctxt: RequestContext, receiver_id: str, key_hash: str, params: Mapping[str, Any]
    ) -> int:
        def work(connection: Transaction) -> Operation | None:
            found = catalog.receiver(connection, receiver_id, None)
            if not hmac.compare_digest(found.key_hash, key_hash):
                raise NotFound(f"The receiver '{receiver_id}' could not be found.")
            maker = catalog.call(connection, receiver_id, CALLS_MOST)
            if maker is None:
                return None
            context = RequestContext.from_message(
                {**maker, "request_id": ctxt.request_id or ids.new_request_id()}
            )
            context.asked = ctxt.asked
            which = (self._cloud, connection, context, found.group_id)
            if found.action in _TENDS:
                return begin_group.tend(*which, _TENDS[found.action])
            action, sign = SCALINGS[found.action]
            count = int({**found.params, **params}.get("count", 1))
            resize = Resize(action, begin_group.CHANGE, sign * count, strict=False)
            return begin_group.resize(*which, resize)

        try:
            operation = self._do(work)
        except AlreadyBegun as before:
            return before.number
        if operation is None:
            return 0
        self._runner.submit(operation)
        return operation.id


def _check(values: Mapping[str, Any], allowed: set[str]) -> None:
    """Raise Invalid for columns that can't be changed."""
    unknown = sorted(set(values) - allowed)
    if unknown:
        raise Invalid(f"These can't be changed: {', '.join(unknown)}.")
