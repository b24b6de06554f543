"""`/servers/{id}/metadata`: a user's metadata of a server."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import server_parts as schemas
from common.errors import Invalid, NotFound


class ServerMetadata:
    """The metadata of a server."""

    @operation("server-metadata:index", on=the_server)
    def index(self, call: Call) -> Any:
        """List metadata."""
        return {"metadata": call.server.meta}

    @operation("server-metadata:show", on=the_server)
    def show(self, call: Call, key: str) -> Any:
        """Show a metadata item."""
        return {"meta": {key: _item(call, key)}}

    @operation("server-metadata:create", body=schemas.SET_METADATA, on=the_server)
    def create(self, call: Call) -> Any:
        """Add or change metadata items; the answer has all."""
        return {"metadata": _set(call, call.body["metadata"])}

    @operation("server-metadata:update_all", body=schemas.SET_METADATA, on=the_server)
    def update_all(self, call: Call) -> Any:
        """Replace all metadata."""
        return {"metadata": _set(call, call.body["metadata"], replace=True)}

    @operation("server-metadata:update", body=schemas.SET_ITEM, on=the_server)
    def update(self, call: Call, key: str) -> Any:
        """Set a metadata item."""
        item = call.body["meta"]
        if key not in item:
            raise Invalid("Request body and URI mismatch")
        _set(call, item)
        return {"meta": item}

    @operation("server-metadata:delete", status=204, on=the_server)
    def delete(self, call: Call, key: str) -> None:
        """Delete a metadata item."""
        _item(call, key)
        call.conductor.set_server_metadata(
            call.ctxt, call.server.uuid, {}, replace=False, delete=(key,)
        )


def _item(call: Call, key: str) -> str:
    if key not in call.server.meta:
        raise NotFound("Metadata item was not found")
    return call.server.meta[key]


def _set(call: Call, items: dict[str, str], *, replace: bool = False) -> dict[str, str]:
    return call.conductor.set_server_metadata(call.ctxt, call.server.uuid, items, replace=replace)
