"""The images that a user may see, and what the policy lets the user do with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from api.image import filters
from api.image.errors import read_only
from api.image.rights import PUBLIC, Rights, target
from common.context import RequestContext
from common.errors import Forbidden, ImageNotFound
from conductor.rpc import ConductorRpc
from db.reading import reading
from db.reads.images import images
from db.reads.images.images import Image, Member
from web.policy import Enforcer


@dataclass(frozen=True)
class _Rights:
    policy: Enforcer
    ctxt: RequestContext

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        return self.policy.allows(self.ctxt, rule, target)

    def check(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        self.policy.check(self.ctxt, rule, target)


class Store:
    """The images that a user may see."""

    def __init__(
        self, engine: sa.Engine, policy: Enforcer, conductor: ConductorRpc | None = None
    ) -> None:
        """Without a ``conductor`` no image can be changed."""
        self.engine, self.policy, self._conductor = engine, policy, conductor

    def find(self, ctxt: RequestContext, image_id: str) -> Image:
        """Return the image. Raises ImageNotFound, also where the policy hides it."""
        with reading(self.engine) as connection:
            found = images.get(connection, image_id, self.project(ctxt))
        if found is not None and self.policy.allows(ctxt, "get_image", target(found)):
            return found
        raise ImageNotFound(f"No image found with ID {image_id}")

    def members(self, image_id: str) -> list[Member]:
        """Return the projects that an image is shared with."""
        with reading(self.engine) as connection:
            return images.members(connection, image_id)

    def listing(self, ctxt: RequestContext, query: filters.Query) -> list[Image]:
        """Return a page of images. Raises Forbidden."""
        self.policy.check(ctxt, "get_images")
        if not self.policy.allows(ctxt, "get_image", PUBLIC):
            return []
        with reading(self.engine) as connection:
            return images.listing(
                connection,
                query.conditions,
                query.properties,
                query.order,
                query.page,
                self.project(ctxt),
                query.reach(ctxt.project_id),
                query.tags,
            )

    def project(self, ctxt: RequestContext) -> str | None:
        """Return the project whose images a user sees besides the public ones; None: of all."""
        if self.policy.allows(ctxt, "context_is_admin"):
            return None
        return ctxt.project_id or ""

    def changeable(self, ctxt: RequestContext, image_id: str, rule: str) -> Image:
        """Return an image that the user may do this to. Raises ImageNotFound, Forbidden."""
        found = self.find(ctxt, image_id)
        self.conductor(ctxt, found.id)
        self.policy.check(ctxt, rule, target(found))
        return found

    def rights(self, ctxt: RequestContext) -> Rights:
        """Return what the policy lets a user do."""
        return _Rights(self.policy, ctxt)

    def conductor(self, ctxt: RequestContext, image_id: str | None = None) -> ConductorRpc:
        """Return the conductor's client, for changes of images. Raises Forbidden without one."""
        if self._conductor is None:
            read_only(image_id)
        # The conductor, which checks the owner again, has no policy.
        ctxt.is_admin = self.project(ctxt) is None
        return self._conductor

    def delete(self, ctxt: RequestContext, image_id: str) -> None:
        """Delete an image of a project. Raises ImageNotFound, Forbidden."""
        found = self.find(ctxt, image_id)
        if found.project_id is None:
            raise Forbidden(f"Image {found.id} is protected and cannot be deleted.")
        self.policy.check(ctxt, "delete_image", target(found))
        self.conductor(ctxt, found.id).delete_image(ctxt, found.id)
