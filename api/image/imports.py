"""Imports: data that were staged, or that are downloaded from where a user says; and their tasks.

Answers are Glance's (glance/api/v2/images.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.image.data.downloads import Downloads
from api.image.data.uploads import Uploads
from api.image.errors import no_data
from api.image.methods import Methods
from api.image.store import Store
from api.plain import Call, operation
from common.clock import iso
from common.errors import Conflict
from conductor.rpc.images import DIRECT, DOWNLOAD
from db.reads.images.images import Image

#: status of an image → that of its task
_STATUSES: Mapping[str, str] = {"uploading": "pending", "importing": "processing"}
_OPEN = frozenset(_STATUSES.values())
_NEEDED = ("container_format", "disk_format")


class Import:
    """``/import``."""

    def __init__(self, store: Store, methods: Methods, downloads: Downloads) -> None:
        self._store, self._methods, self._downloads = store, methods, downloads

    @operation(asks=("modify_image",), status=202)
    def on_post(self, call: Call, image_id: str) -> None:
        """Begin an import; the image and its task show its progress and result."""
        store, ctxt = self._store, call.ctxt
        found = store.find(ctxt, image_id)
        if not self._methods.names:
            no_data(found.id)
        name, uri = self._methods.named(call.body())
        store.changeable(ctxt, found.id, "modify_image")
        _require_ready(found, name)
        if name == DIRECT:
            store.conductor(ctxt, found.id).import_staged_image(ctxt, found.id)
        else:
            self._downloads.begin(ctxt, store.conductor(ctxt, found.id), found, uri)


class ImportInfo:
    """``/v2/info/import``."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    @operation()
    def on_get(self, call: Call) -> Any:
        """List the methods."""
        methods = {
            "description": "Import methods available.",
            "type": "array",
            "value": list(self._methods.names),
        }
        return {"import-methods": methods}


class Tasks:
    """Imports of an image: the last one."""

    def __init__(self, store: Store, uploads: Uploads) -> None:
        self._store, self._uploads = store, uploads

    @operation()
    def on_get(self, call: Call, image_id: str) -> Any:
        """Show how the last import went; an empty list if there was none.

        As in Glance others' tasks are not shown: a URI may be signed. While data come to this
        host, the message says how many have, in Glance's form.
        """
        found = self._store.find(call.ctxt, image_id)
        mine = self._store.project(call.ctxt) in (None, found.project_id)
        task = found.import_task if mine else None
        if task is None:
            return {"tasks": []}
        shown = _task(found, task)
        is_open = shown["status"] in _OPEN
        received = self._uploads.spool.received(found.id) if is_open else None
        if received is not None:
            shown["message"] = f"Copied {received >> 20} MiB"
        return {"tasks": [shown]}


def _require_ready(found: Image, method: str) -> None:
    """Raise Conflict unless the image can be imported in this way now."""
    if found.status == "active":
        raise Conflict("Image with status active cannot be target for import")
    if method == DOWNLOAD and found.status != "queued":
        raise Conflict("Image needs to be in 'queued' state to use 'web-download' method")
    if method == DIRECT and found.status != "uploading":
        raise Conflict("Image needs to be staged before 'glance-direct' method can be used")
    for name in _NEEDED:
        if not getattr(found, name):
            raise Conflict(f"'{name}' needs to be set before import")


def _task(found: Image, task: Mapping[str, Any]) -> dict[str, Any]:
    message = task.get("message") or ""
    status = _STATUSES.get(found.status, "success")
    if message or found.status == "killed":
        status = "failure"
    method = {"name": task["method"]} | ({"uri": task["uri"]} if task.get("uri") else {})
    return {
        "id": task["id"],
        "type": "api_image_import",
        "status": status,
        "message": message,
        "owner": found.project_id,
        "image_id": found.id,
        "user_id": task["user_id"],
        "request_id": task["request_id"],
        "input": {"image_id": found.id, "import_req": {"method": method}},
        "result": None,
        "created_at": iso(found.updated_at),
        "updated_at": iso(found.updated_at),
        "expires_at": None,
    }
