"""`/attachments`: which server has which volume. Servers get and lose them through compute."""

from __future__ import annotations

from typing import Any

from api.volume import filters, queries, schemas, views
from api.volume.call import Call, operation
from common.errors import Conflict, Invalid, NotFound
from db.reads.volumes import volumes
from db.reads.volumes.block_storage import Filter
from db.reads.volumes.volumes import Attachment

_EQUAL = {
    "instance_id": "server_uuid",
    "volume_id": "volume_id",
    "status": "status",
    "attach_status": "status",
}
_COMPUTE = "Servers get and lose volumes through the compute API."


def _find(call: Call, attachment_id: str) -> Attachment:
    found = call.read(volumes.attachment, attachment_id, call.reach)
    if found is None:
        raise NotFound(f"Volume attachment could not be found with filter: id = {attachment_id}.")
    return found


class Attachments:
    """Attachments."""

    @operation("volume:attachments", since="3.27")
    def index(self, call: Call) -> Any:
        """List attachments."""
        keys = ("id", "status", "instance", "volume_id")
        shown = [views.attachment(one) for one in self._found(call)]
        return {"attachments": [{key: one[key] for key in keys} for one in shown]}

    @operation("volume:attachments", since="3.27")
    def detail(self, call: Call) -> Any:
        """List attachments in detail."""
        return {"attachments": [views.attachment(one) for one in self._found(call)]}

    @staticmethod
    def _found(call: Call) -> list[Attachment]:
        filters.require_known(call, "attachment")
        everybody = call.is_admin and call.query.boolean("all_tenants")
        page, offset = queries.page(call)
        if filters.finds_nothing(call, "attachment", "project_id"):
            return []
        return call.read(
            volumes.attachment_listing,
            Filter(
                call.query.last("project_id") if everybody else call.project,
                equal=queries.equal(call, _EQUAL),
            ),
            queries.order(call, volumes.SORTABLE_ATTACHMENTS),
            page,
            offset,
        )

    @operation("volume:attachments", since="3.27")
    def show(self, call: Call, attachment_id: str) -> Any:
        """Show an attachment."""
        return {"attachment": views.attachment(_find(call, attachment_id))}

    @operation("volume:attachment_create", since="3.27", body=schemas.ATTACHMENT)
    def create(self, call: Call) -> Any:
        """Refuse: only the compute API makes attachments."""
        volume_id = call.body["attachment"]["volume_uuid"]
        if call.read(volumes.get, volume_id, call.reach) is None:
            raise NotFound(f"Volume {volume_id} could not be found.")
        raise Invalid(_COMPUTE)

    @operation("volume:attachment_update", since="3.27")
    def update(self, call: Call, attachment_id: str) -> Any:
        """Refuse, as ``create`` does."""
        _find(call, attachment_id)
        raise Invalid(_COMPUTE)

    @operation("volume:attachment_complete", since="3.44")
    def complete(self, call: Call, attachment_id: str) -> Any:
        """Refuse, as ``create`` does."""
        _find(call, attachment_id)
        raise Invalid(_COMPUTE)

    @operation("volume:attachment_delete", since="3.27")
    def delete(self, call: Call, attachment_id: str) -> Any:
        """Refuse what a server uses, as Cinder does since CVE-2023-2088."""
        found = _find(call, attachment_id)
        raise Conflict(
            "Detaching volume not allowed, this volume is attached to a server: use the compute "
            f"API to detach volume {found.volume_id} from server {found.server_uuid}."
        )
