"""The Image API's resources. Images of servers can be deleted; other changes are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlencode

import sqlalchemy as sa

from api.image import filters, views
from api.image.errors import read_only
from api.image.schemas import SCHEMAS
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import Forbidden, ImageNotFound, NotFound
from conductor.client import ConductorClient
from db.reading import reading
from db.reads import images
from db.reads.images import Image
from web.policy import Enforcer

#: the policy's target: an image that everybody sees
_PUBLIC = {"project_id": None, "member_id": None, "visibility": "public"}


class Store:
    """The images that a user may see."""

    def __init__(
        self, engine: sa.Engine, policy: Enforcer, conductor: ConductorClient | None = None
    ) -> None:
        """Without a ``conductor`` no image can be deleted."""
        self.engine, self.policy, self.conductor = engine, policy, conductor

    def find(self, ctxt: RequestContext, image_id: str) -> Image:
        """Return the image. Raises ImageNotFound, also where the policy hides it."""
        with reading(self.engine) as connection:
            found = images.get(connection, image_id, self.project(ctxt))
        if found is not None and self.policy.allows(ctxt, "get_image", _target(found)):
            return found
        raise ImageNotFound(f"No image found with ID {image_id}")

    def project(self, ctxt: RequestContext) -> str | None:
        """Return the project whose images a user sees besides the public ones; None: of all."""
        if self.policy.allows(ctxt, "context_is_admin"):
            return None
        return ctxt.project_id or ""

    def delete(self, ctxt: RequestContext, image_id: str) -> None:
        """Delete a server's image. Raises ImageNotFound, Forbidden."""
        found = self.find(ctxt, image_id)
        if found.project_id is None or self.conductor is None:
            raise Forbidden(f"Image {found.id} is protected and cannot be deleted.")
        self.policy.check(ctxt, "delete_image", _target(found))
        self.conductor.delete_image(ctxt, found.id)


def _target(found: Image) -> Mapping[str, str | None]:
    return {**_PUBLIC, "project_id": found.project_id, "visibility": views.visibility(found)}


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
        if query.possible and self._store.policy.allows(call.ctxt, "get_image", _PUBLIC):
            with reading(self._store.engine) as connection:
                found = images.listing(
                    connection,
                    query.conditions,
                    query.properties,
                    query.order,
                    query.page,
                    self._store.project(call.ctxt),
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

    @operation(status=204)
    def on_delete(self, call: Call, image_id: str) -> None:
        """Delete a server's image; others are protected."""
        self._store.delete(call.ctxt, image_id)


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
