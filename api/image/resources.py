"""The Image API's resources; they are read-only and refuse changes."""

from __future__ import annotations

from typing import Any, NoReturn
from urllib.parse import urlencode

import sqlalchemy as sa

from api.image import filters, views
from api.image.errors import read_only
from api.image.schemas import SCHEMAS
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import Forbidden, ImageNotFound, NotFound
from db.reading import reading
from db.reads import images
from db.reads.images import Image
from web.policy import Enforcer

#: the policy's target: every image is public
_TARGET = {"project_id": None, "member_id": None, "visibility": views.CONSTANTS["visibility"]}


class Store:
    """The images that a user may see."""

    def __init__(self, engine: sa.Engine, policy: Enforcer) -> None:
        self.engine = engine
        self.policy = policy

    def find(self, ctxt: RequestContext, image_id: str) -> Image:
        """Return the image. Raises ImageNotFound, also where the policy hides it."""
        if self.policy.allows(ctxt, "get_image", _TARGET):
            with reading(self.engine) as connection:
                found = images.get(connection, image_id)
            if found is not None:
                return found
        raise ImageNotFound(f"No image found with ID {image_id}")


class Images:
    """The collection."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call) -> Any:
        """List images, one page."""
        query = filters.parse(call.pairs)
        self._store.policy.check(call.ctxt, "get_images")
        found: list[Image] = []
        if query.possible and self._store.policy.allows(call.ctxt, "get_image", _TARGET):
            with reading(self._store.engine) as connection:
                found = images.listing(
                    connection, query.conditions, query.properties, query.order, query.page
                )
        rest = [(name, value) for name, value in call.pairs if name != "marker"]
        body = {
            "images": [views.image(each) for each in found],
            "first": _link(rest),
            "schema": "/v2/schemas/images",
        }
        if found and len(found) == query.page.limit:
            body["next"] = _link([*rest, ("marker", found[-1].id)])
        return body

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Refuse a change."""
        read_only()


def _link(pairs: list[tuple[str, str]]) -> str:
    return f"/v2/images?{urlencode(pairs)}" if pairs else "/v2/images"


class ImageItem:
    """One image."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call, image_id: str) -> Any:
        """Show an image."""
        return views.image(self._store.find(call.ctxt, image_id))

    @operation()
    def on_patch(self, call: Call, image_id: str) -> NoReturn:
        """Refuse a change."""
        read_only(self._store.find(call.ctxt, image_id).id)

    @operation()
    def on_delete(self, call: Call, image_id: str) -> NoReturn:
        """Refuse, as for every protected image."""
        found = self._store.find(call.ctxt, image_id)
        raise Forbidden(f"Image {found.id} is protected and cannot be deleted.")


class ImageData:
    """The data of an image, which stays in the clusters' storages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call, image_id: str) -> NoReturn:
        """Refuse a change."""
        found = self._store.find(call.ctxt, image_id)
        raise Forbidden(f"The data of image {found.id} can't be downloaded here.")

    @operation()
    def on_put(self, call: Call, image_id: str) -> NoReturn:
        """Refuse a change."""
        read_only(self._store.find(call.ctxt, image_id).id)


class ImageAction:
    """Other changes to an image: import, stage, tags, deactivation …"""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_post(self, call: Call, image_id: str, name: str = "") -> NoReturn:
        """Refuse a change."""
        read_only(self._store.find(call.ctxt, image_id).id)

    on_put = on_post
    on_delete = on_post


class Members:
    """Members of an image: none, as all projects see it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call, image_id: str, name: str = "") -> NoReturn:
        """Refuse, as Glance does for images that aren't `shared`."""
        self._store.find(call.ctxt, image_id)
        raise Forbidden("Only shared images have members.")

    on_post = on_get
    on_put = on_get
    on_delete = on_get


class Tasks:
    """Import tasks of an image: none."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call, image_id: str) -> Any:
        """An empty list."""
        self._store.find(call.ctxt, image_id)
        return {"tasks": []}


class Schemas:
    """JSON schemas of the API's objects."""

    @operation()
    def on_get(self, call: Call, name: str) -> Any:
        """Show a schema."""
        if name not in SCHEMAS:
            raise NotFound
        return SCHEMAS[name]


class ImportInfo:
    """Import methods: none."""

    @operation()
    def on_get(self, call: Call) -> Any:
        """An empty list of methods."""
        methods = {"description": "Import methods available.", "type": "array", "value": []}
        return {"import-methods": methods}


class StoreInfo:
    """Stores: there is no choice."""

    @operation()
    def on_get(self, call: Call) -> NoReturn:
        """Not found, as where Glance has a single store."""
        raise NotFound("Multi backend is not supported at this site.")
