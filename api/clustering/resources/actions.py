"""`/actions` and `/events`: the operations about groups."""

from __future__ import annotations

from typing import Any

from api.clustering import views
from api.clustering.call import MAX_LIMIT, Call, operation
from common.errors import Invalid, NotFound, Unimplemented
from db.reads.groups import actions
from db.reads.groups.actions import Action
from db.reads.groups.groups import GROUPS
from db.reads.keyset import Page
from db.reads.volumes.block_storage import Filter

_DIGITS = 18


class Actions:
    """Operations that were asked for, and those that groups began by themselves."""

    @operation("actions:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List actions."""
        return {"actions": [views.action(one) for one in _listed(call, "target")]}

    @operation("actions:get")
    def show(self, call: Call, action_id: str) -> Any:
        """Show an action."""
        return {"action": views.action(_find(call, action_id, "action"))}

    @operation("actions:get")
    def update(self, call: Call, action_id: str) -> Any:
        """Cancel an action: not supported."""
        _find(call, action_id, "action")
        raise Unimplemented("Actions are not cancelled: another one takes their place.")


class Events:
    """What has happened to groups."""

    @operation("events:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List events."""
        found = _listed(call, "oid")
        names = call.read(actions.names, [one.resource_id for one in found])
        return {"events": [views.event(one, names) for one in found]}

    @operation("events:get")
    def show(self, call: Call, event_id: str) -> Any:
        """Show an event."""
        found = _find(call, event_id, "event")
        names = call.read(actions.names, [found.resource_id])
        return {"event": views.event(found, names)}


def _find(call: Call, text: str, noun: str) -> Action:
    found = None
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        found = call.read(actions.get, int(text), call.reach)
    if found is None:
        raise NotFound(f"The {noun} '{text}' could not be found.")
    return found


def _listed(call: Call, target: str) -> list[Action]:
    everybody = call.query.boolean("global_project")
    if everybody:
        call.check("clusters:global")
    equal: dict[str, Any] = {}
    cluster = call.query.last("cluster_id") or call.query.last(target)
    if cluster is not None:
        try:
            equal["resource_id"] = call.find(GROUPS, cluster).id
        except NotFound:
            # Of a group that is deleted.
            equal["resource_id"] = cluster
    wanted = Filter(None if everybody else call.project, equal)
    limit, marker = call.query.page(MAX_LIMIT)
    order = []
    for part in (call.query.last("sort") or "").split(","):
        key, _, turn = part.strip().partition(":")
        if key and (key not in actions.SORTABLE or turn not in ("", "asc", "desc")):
            raise Invalid(f"Unsupported sort key '{part[:255]}' for 'sort'.")
        if key:
            order.append((key, turn == "desc"))
    page = Page(limit=limit, marker=marker)
    found = call.read(actions.listing, wanted, order or [("id", False)], page)
    return [one for one in found if _fits(call, one)]


def _fits(call: Call, one: Action) -> bool:
    """Return whether an action has what the query asks of its name and status."""
    action, status = call.query.last("action"), call.query.last("status")
    shown = views.action(one)
    return action in (None, shown["action"]) and status in (None, shown["status"])
