"""`/messages`: why volumes are in error, or were not changed as asked."""

from __future__ import annotations

import datetime
from typing import Any

from api.volume import queries
from api.volume.call import Call, operation
from api.volume.views import links, moment
from common import ids
from common.errors import NotFound
from db.reads import volumes
from db.reads.volumes import Filter, Volume

#: how long Cinder keeps one
_KEPT = datetime.timedelta(days=30)


class Messages:
    """The last fault of each volume of the project."""

    @operation("volume:get_all", since="3.3")
    def index(self, call: Call) -> Any:
        """List them."""
        page, offset = queries.page(call)
        found = call.read(volumes.listing, _failed(call), (), page, offset)
        return {"messages": [_view(call, one) for one in found]}

    @operation("volume:get_all", since="3.3")
    def show(self, call: Call, record_id: str) -> Any:
        """Show one."""
        for one in call.read(volumes.listing, _failed(call)):
            if _id(one) == record_id:
                return {"message": _view(call, one)}
        raise NotFound(f"Message {record_id} could not be found.")


def _failed(call: Call) -> Filter:
    return Filter(project_id=call.project, failed=True)


def _id(one: Volume) -> str:
    return ids.named("volume_message", f"{one.id} {one.fault}")


def _view(call: Call, one: Volume) -> dict[str, Any]:
    at = one.updated_at or one.created_at
    return {
        "id": _id(one),
        "event_id": "VOLUME_VOLUME_001_001",
        "user_message": one.fault,
        "message_level": "ERROR",
        "resource_type": "VOLUME",
        "resource_uuid": one.id,
        "created_at": moment(at),
        "guaranteed_until": moment(at + _KEPT),
        "request_id": None,
        "links": links(call, "messages", _id(one)),
    }


MESSAGES = Messages()
