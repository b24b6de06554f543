"""`/actions` and `/events`: the operations about groups and their members."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

from api.clustering import schemas, views
from api.clustering.call import Call, operation
from common.errors import Invalid, NotFound, Unimplemented
from db.reads.groups import actions
from db.reads.groups.actions import Action
from db.reads.groups.groups import GROUPS, MEMBERS, Kind
from db.reads.groups.shown import ACTION_STATUSES, ACTIONS, EVENT_LEVELS
from db.reads.keyset import MarkerNotFound, Page
from db.reads.volumes.block_storage import Filter

_DIGITS = 18
#: with those of Senlin that nothing has here
_ACTIONS = frozenset(
    {
        *ACTIONS.values(),
        *("CLUSTER_ATTACH_POLICY", "CLUSTER_DETACH_POLICY", "NODE_UPDATE", "NODE_JOIN"),
        *("NODE_LEAVE", "NODE_CHECK", "NODE_RECOVER", "NODE_OPERATION"),
    }
)


class Actions:
    """Operations that were asked for, and those that groups began by themselves."""

    @operation("actions:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List actions."""
        found = _listed(call, "target", "name", status=ACTION_STATUSES)
        return {"actions": [views.action(call, one) for one in found]}

    @operation("actions:get")
    def show(self, call: Call, action_id: str) -> Any:
        """Show an action."""
        return {"action": views.action(call, _action(call, action_id))}

    @operation("actions:get", body=schemas.ACTION_UPDATE)
    def update(self, call: Call, action_id: str) -> Any:
        """Cancel an action: not supported."""
        _action(call, action_id)
        raise Unimplemented("Actions are not cancelled: another one takes their place.")


class Events:
    """What has happened to groups."""

    @operation("events:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List events."""
        found = _listed(call, "oid", "oname", "otype", level=EVENT_LEVELS)
        return {"events": [views.event(one) for one in found]}

    @operation("events:get")
    def show(self, call: Call, event_id: str) -> Any:
        """Show an event."""
        return {"event": views.event(_find(call, event_id, "event"))}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _action(call: Call, text: str) -> Action:
    """Return the action of this ID or name."""
    if _is_number(text):
        return _find(call, text, "action")
    where, two = Filter(call.reach, {"name": text}), Page(limit=2)
    found: list[Action] = call.read(actions.listing, where, [("id", False)], two)
    if len(found) > 1:
        raise Invalid(f"More than one action has the name '{text}': give its ID.")
    return found[0] if found else _find(call, text, "action")


def _find(call: Call, text: str, noun: str) -> Action:
    found = call.read(actions.get, int(text), call.reach) if _is_number(text) else None
    if found is None:
        raise NotFound(f"The {noun} '{text}' could not be found.")
    return found


def _listed(call: Call, targets: str, *names: str, **known: Collection[str]) -> list[Action]:
    """Return a page of operations; `targets`: the filter of what they are about."""
    wanted = call.filters("cluster_id", targets, *names, **known, action=_ACTIONS)
    for name, kinds in (("cluster_id", (GROUPS,)), (targets, (GROUPS, MEMBERS))):
        if name in wanted:
            wanted[name] = tuple(id_of(call, one, *kinds) for one in wanted[name])
    return call.page_of(actions.listing, actions.SORTABLE, wanted, "id", _marked)


def id_of(call: Call, named: str, *kinds: Kind[Any]) -> str:
    """Return the ID of what a filter names; of what is deleted only the ID is known."""
    for kind in kinds:
        with contextlib.suppress(NotFound):
            return str(call.find(kind, named).id)
    return named


def _marked(text: str) -> int:
    if not _is_number(text):
        raise MarkerNotFound
    return int(text)
