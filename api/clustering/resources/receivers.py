"""`/receivers` and `/webhooks`: URLs that scale a cluster, for alerts."""

from __future__ import annotations

import re
from typing import Any

from api.clustering import schemas, views
from api.clustering.call import Call, changes, operation, the
from api.clustering.errors import NotAtVersion
from api.clustering.resources.actions import id_of
from api.clustering.resources.clusters import referred
from common import ids
from common.errors import Forbidden, Invalid, NotFound, Unimplemented
from common.resources import webhooks
from conductor.rpc.groups import NewReceiver
from db.reads.groups.groups import GROUPS, RECEIVERS, Receiver
from db.reads.groups.shown import CLUSTER_ACTIONS
from web.guard import Reply
from web.rate_limits import TooManyRequests

_THE = the(RECEIVERS)
#: what a webhook may do
ACTIONS = ("CLUSTER_SCALE_OUT", "CLUSTER_SCALE_IN", "CLUSTER_CHECK", "CLUSTER_RECOVER")
_TYPES = ("webhook", "message")
_NAMES = frozenset(CLUSTER_ACTIONS.values())
_SECONDS = 60
_COUNT_MOST = 1000
_COUNT = re.compile("[1-9][0-9]{0,2}|1000", re.ASCII)


class Receivers:
    """The receivers of a project."""

    @operation("receivers:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List receivers."""
        wanted = call.filters("name", "cluster_id", "user", type=_TYPES, action=_NAMES)
        if clusters := wanted.get("cluster_id"):
            wanted["cluster_id"] = tuple(id_of(call, one, GROUPS) for one in clusters)
        found = call.listed(RECEIVERS, wanted)
        return {"receivers": [views.receiver(call, one) for one in found]}

    @operation("receivers:create", body=schemas.RECEIVER, status=201)
    def create(self, call: Call) -> Any:
        """Make a webhook. Its URL is shown now, and to the token of this request."""
        asked = call.body["receiver"]
        if asked["type"] != "webhook":
            raise Unimplemented("Receivers of the type message are not supported; webhooks are.")
        if not asked.get("cluster_id"):
            raise Invalid("Cluster identity is required for creating webhook receiver.")
        if not asked.get("action"):
            raise Invalid("Action name is required for creating webhook receiver.")
        group = referred(call, GROUPS, asked["cluster_id"])
        receiver_id, secret = ids.new_uuid(), webhooks.new()
        new = NewReceiver(
            receiver_id,
            asked["name"].strip(),
            group.id,
            _action(asked["action"]),
            _params(asked.get("params") or {}),
            webhooks.hashed(receiver_id, secret),
            webhooks.sealed(receiver_id, secret, call.token),
        )
        call.conductor.create_receiver(call.ctxt, new)
        made = views.receiver(call, call.find(RECEIVERS, receiver_id), secret)
        location = {"Location": f"{call.root}/receivers/{receiver_id}"}
        return Reply({"receiver": made}, headers=location)

    @operation("receivers:get", on=_THE)
    def show(self, call: Call, receiver: Receiver) -> Any:
        """Show a receiver."""
        return {"receiver": views.receiver(call, receiver)}

    @operation(
        "receivers:update",
        body=schemas.RECEIVER_UPDATE,
        since="1.7",
        absent=NotAtVersion,
        on=_THE,
    )
    def update(self, call: Call, receiver: Receiver) -> Any:
        """Change the name, the action or the parameters of a receiver."""
        asked = call.body["receiver"]
        action, params = asked.get("action"), asked.get("params")
        changed = changes(
            name=asked.get("name"),
            action=None if action is None else _action(action),
            params=None if params is None else _params(params),
        )
        call.conductor.change_receiver(call.ctxt, receiver.id, changed)
        return {"receiver": views.receiver(call, call.find(RECEIVERS, receiver.id))}

    @operation("receivers:delete", status=204, on=_THE)
    def delete(self, call: Call, receiver: Receiver) -> None:
        """Delete a receiver: its URL means nothing any more."""
        call.conductor.delete_receiver(call.ctxt, receiver.id)

    @operation("receivers:update", on=_THE)
    def notify(self, call: Call, receiver: Receiver) -> Any:
        """Read the messages of a receiver, which a webhook has not got."""
        raise Invalid("Only receivers of the type message are notified.")


class Webhooks:
    """The URLs of receivers, which need no token: their secret says who calls."""

    @operation(status=202)
    def trigger(self, call: Call, receiver_id: str) -> Any:
        """Carry out what a webhook is for; the body, of whatever alert, may name a count."""
        found: Receiver | None = call.read(RECEIVERS.get, receiver_id, None)
        secret = call.query.last("key") or ""
        known = "0" * 64 if found is None else found.key_hash
        if not webhooks.is_of(known, receiver_id, secret) or found is None:
            raise NotFound(f"The receiver '{receiver_id}' could not be found.")
        count = call.query.number("count")
        params = _count_in(call.body) if count is None else _params({"count": count})
        call.ctxt.project_id, call.ctxt.user_id = found.project_id, found.user_id
        key_hash = webhooks.hashed(receiver_id, secret)
        number = call.conductor.trigger_receiver(call.ctxt, receiver_id, key_hash, params)
        if not number:
            raise TooManyRequests("The webhook is called too often.", seconds=_SECONDS)
        return call.accepted({"action": str(number)}, number)


def _action(name: str) -> str:
    if name in ACTIONS:
        return name
    if name not in _NAMES:
        raise Invalid(f"Illegal action '{name}' specified.")
    raise Forbidden(f"A webhook may not do {name}; it may do {', '.join(ACTIONS)}.")


def _params(given: Any) -> dict[str, Any]:
    count = given.get("count")
    if count is None:
        return {}
    if not 1 <= int(count) <= _COUNT_MOST:
        raise Invalid(f"count must be from 1 to {_COUNT_MOST}.")
    return {"count": int(count)}


def _count_in(body: Any) -> dict[str, Any]:
    """Return the parameters that the body of a call names, as Senlin reads it: its count, or
    that of its `params`. What else alerts say there is ignored."""
    given = body if isinstance(body, dict) else {}
    params = given.get("params")
    count = str((params if isinstance(params, dict) else given).get("count"))
    return {"count": int(count)} if _COUNT.fullmatch(count) else {}
