"""The Image API's resources: images, their tags and states; ``members`` has their members."""

from __future__ import annotations

from typing import Any, NoReturn
from urllib.parse import urlencode

from api.image import documents, filters, rights, views
from api.image.data.uploads import Uploads
from api.image.methods import Methods
from api.image.schemas import SCHEMAS
from api.image.store import Store
from api.plain import Call, operation
from common.errors import NotFound
from web.errors import UnsupportedMedia
from web.guard import Reply


class Images:
    """The collection."""

    def __init__(self, store: Store, methods: Methods) -> None:
        self._store, self._methods = store, methods

    @operation(asks=("get_images",))
    def on_get(self, call: Call) -> Any:
        """List images, one page."""
        query = filters.parse(call.pairs)
        found = self._store.listing(call.ctxt, query)
        rest = [(name, value) for name, value in call.pairs if name != "marker"]
        body = {
            "images": [views.image(each) for each in found],
            "first": _link(rest),
            "schema": "/v2/schemas/images",
        }
        if found and len(found) == query.page.limit:
            body["next"] = _link([*rest, ("marker", found[-1].id)])
        return body

    @operation(asks=("add_image", "publicize_image", "communitize_image"), status=201)
    def on_post(self, call: Call) -> Any:
        """Make an image that has no data yet."""
        store, ctxt = self._store, call.ctxt
        conductor = store.conductor(ctxt)
        new = documents.new_image(call.body(), ctxt.project_id or "")
        store.policy.check(ctxt, "add_image", {"project_id": new.project_id})
        rights.check_visibility(store.rights(ctxt), new.visibility, new.project_id)
        found = store.find(ctxt, conductor.create_image(ctxt, new))
        headers = {"Location": f"{call.root}/v2/images/{found.id}"}
        if self._methods.names:
            headers["OpenStack-image-import-methods"] = ",".join(self._methods.names)
        return Reply(views.image(found), headers=headers)


def _link(pairs: list[tuple[str, str]]) -> str:
    return f"/v2/images?{urlencode(pairs)}" if pairs else "/v2/images"


class ImageItem:
    """One image."""

    def __init__(self, store: Store, uploads: Uploads) -> None:
        self._store, self._uploads = store, uploads

    @operation(asks=("get_image",))
    def on_get(self, call: Call, image_id: str) -> Any:
        """Show an image."""
        return views.image(self._store.find(call.ctxt, image_id))

    @operation(asks=("modify_image", "publicize_image", "communitize_image"))
    def on_patch(self, call: Call, image_id: str) -> Any:
        """Change an image."""
        store, ctxt = self._store, call.ctxt
        found = store.find(ctxt, image_id)
        conductor = store.conductor(ctxt, found.id)
        asked = documents.edits(call.body(), by_path=_by_path(call))
        rights.check_edits(store.rights(ctxt), found, asked)
        if asked:
            conductor.edit_image(ctxt, found.id, asked)
        return views.image(store.find(ctxt, found.id) if asked else found)

    @operation(asks=("delete_image",), status=204)
    def on_delete(self, call: Call, image_id: str) -> None:
        """Delete a project's image; a protected image is refused. Works on a full disk as well."""
        self._uploads.spool.room.drop_ballast()
        self._store.delete(call.ctxt, image_id)
        self._uploads.spool.watch()


def _by_path(call: Call) -> bool:
    """Return how the change is written. Raises UnsupportedMedia."""
    content_type = call.request.content_type if call.request is not None else None
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind not in documents.PATCHES:
        allowed = ", ".join(sorted(documents.PATCHES))
        raise UnsupportedMedia(f"Image PATCH expects Content-Type one of: {allowed}")
    return documents.PATCHES[kind]


class Action:
    """Whether servers can be made of an image."""

    def __init__(self, store: Store, noun: str, *, wanted: bool) -> None:
        """``noun``: the action's name, and its rule's; ``wanted``: whether they can, after it."""
        self._store, self.noun, self._wanted = store, noun, wanted

    @operation(asks=("{noun}",), status=204)
    def on_post(self, call: Call, image_id: str) -> None:
        """Deactivate an image, or reactivate it."""
        found = self._store.changeable(call.ctxt, image_id, self.noun)
        conductor = self._store.conductor(call.ctxt, found.id)
        conductor.activate_image(call.ctxt, found.id, wanted=self._wanted)


class Tags:
    """One tag of an image."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation(asks=("modify_image",), status=204)
    def on_put(self, call: Call, image_id: str, tag: str) -> None:
        """Give an image a tag."""
        documents.require_tag(tag)
        self._change(call, image_id, tag, wanted=True)

    @operation(asks=("modify_image",), status=204)
    def on_delete(self, call: Call, image_id: str, tag: str) -> None:
        """Take a tag away."""
        self._change(call, image_id, tag, wanted=False)

    def _change(self, call: Call, image_id: str, tag: str, *, wanted: bool) -> None:
        found = self._store.changeable(call.ctxt, image_id, "modify_image")
        self._store.conductor(call.ctxt, found.id).tag_image(
            call.ctxt, found.id, tag, wanted=wanted
        )


class AllTasks:
    """Tasks of the whole service: none; Glance lets only administrators see them."""

    @operation("tasks_api_access")
    def on_get(self, call: Call) -> Any:
        """An empty list."""
        return {"tasks": [], "first": "/v2/tasks", "schema": "/v2/schemas/tasks"}


class Schemas:
    """JSON schemas of the API's objects."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    @operation()
    def on_get(self, call: Call, name: str) -> Any:
        """Show a schema."""
        if f"{self._prefix}{name}" not in SCHEMAS:
            raise NotFound
        return SCHEMAS[f"{self._prefix}{name}"]


class StoreInfo:
    """Stores: there is no choice."""

    @operation()
    def on_get(self, call: Call) -> NoReturn:
        """Not found, as where Glance has a single store."""
        raise NotFound("Multi backend is not supported at this site.")
