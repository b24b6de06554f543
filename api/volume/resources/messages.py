"""`/messages`: why operations on volumes, snapshots and backups failed, out of the ledger."""

from __future__ import annotations

import datetime
from typing import Any

from api.volume import filters, queries
from api.volume.call import Call, operation
from api.volume.views import links, moment
from common import ids
from common.errors import NotFound
from common.story import volume_messages
from db.reads.keyset import MarkerNotFound, Page
from db.reads.volumes import messages as reads
from db.reads.volumes.block_storage import Filter
from db.reads.volumes.messages import FILTERS, SORTABLE, Message

#: Cinder's time to live of a message; here `[conductor] history_days` decides
_KEPT = datetime.timedelta(days=30)
_PAGED_SINCE = 5
_KIND = "volume_message"
_LEVEL = "ERROR"


class Messages:
    """Failed operations on what belongs to the project."""

    @operation("message:get_all", since="3.3")
    def index(self, call: Call) -> Any:
        """List messages; filters, order and pages since 3.5."""
        filters.require_known(call, "message")
        wanted, order, page, offset = Filter(call.project), [], Page(queries.MAX_LIMIT), 0
        if call.version >= _PAGED_SINCE:
            wanted = Filter(call.project, queries.equal(call, {name: name for name in FILTERS}))
            order = queries.order(call, SORTABLE)
            page, offset = queries.page(call)
            marker = call.query.last("marker")
            page = Page(page.limit, None if marker is None else _marker(marker))
            if call.query.last("message_level") not in (None, _LEVEL):
                return {"messages": []}
        found = call.read(reads.listing, wanted, order, page, offset)
        return queries.shown(call, "messages", [_view(call, one) for one in found], page)

    @operation("message:get", since="3.3")
    def show(self, call: Call, message_id: str) -> Any:
        """Show a message."""
        return {"message": _view(call, _find(call, message_id))}

    @operation("message:delete", since="3.3", status=204)
    def delete(self, call: Call, message_id: str) -> None:
        """Delete a message; its operation is not removed from the ledger."""
        call.conductor.delete_volume_message(call.ctxt, _find(call, message_id).operation_id)


def _find(call: Call, record_id: str) -> Message:
    number = ids.number_of(_KIND, record_id)
    found = None if number is None else call.read(reads.get, number, call.reach)
    if found is None:
        raise NotFound(f"Message {record_id} could not be found.")
    return found


def _marker(text: str) -> int:
    number = ids.number_of(_KIND, text)
    if number is None:
        raise MarkerNotFound
    return number


def _view(call: Call, one: Message) -> dict[str, Any]:
    record_id = ids.numbered(_KIND, one.operation_id)
    return {
        "id": record_id,
        "event_id": one.event_id,
        "user_message": _text(call, one),
        "message_level": _LEVEL,
        "created_at": moment(one.created_at),
        "guaranteed_until": moment(one.created_at + _KEPT),
        "request_id": one.request_id,
        "links": links(call, "messages", record_id),
        "resource_type": one.resource_type,
        "resource_uuid": one.resource_uuid,
    }


def _text(call: Call, one: Message) -> str:
    """Return what failed and why; only administrators read what names hosts and tasks."""
    words = volume_messages.event(one.action, one.category).words
    why = volume_messages.WORDS.get(one.category, volume_messages.SOMETHING)
    return f"{words}: {one.message if call.is_admin else one.owner_message or why}"
