"""The projects that an image is shared with. Answers and refusals are Glance's."""

from __future__ import annotations

from typing import Any

from api.image import views
from api.image.rights import target
from api.image.store import Store
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import Forbidden, Invalid, NotFound
from db.reads.images.images import Image, Member

_STATUSES = ("pending", "accepted", "rejected")
_LONGEST = 255


class Members:
    """The collection."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation(asks=("get_members",))
    def on_get(self, call: Call, image_id: str) -> Any:
        """List the members: all for the owner, itself for a member."""
        found = _shared(self._store, call.ctxt, image_id)
        mine = target(found, call.ctxt.project_id)
        self._store.policy.check(call.ctxt, "get_members", mine)
        members = _seen(self._store, call.ctxt, found)
        return {
            "members": [views.member(one) for one in members],
            "schema": "/v2/schemas/members",
        }

    @operation(asks=("add_member",))
    def on_post(self, call: Call, image_id: str) -> Any:
        """Share the image with a project."""
        found = _shared(self._store, call.ctxt, image_id)
        conductor = self._store.conductor(call.ctxt, found.id)
        member = _text(call.body(), "member")
        if not member or len(member) > _LONGEST:
            raise Invalid(f"Member can't be empty, or longer than {_LONGEST} characters")
        if not self._store.policy.allows(call.ctxt, "add_member", target(found)):
            raise Forbidden(f"Not allowed to create members for image {found.id}.")
        conductor.create_image_member(call.ctxt, found.id, member)
        return views.member(_one(self._store, found, member))


class MemberItem:
    """One member."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation(asks=("get_member",))
    def on_get(self, call: Call, image_id: str, member_id: str) -> Any:
        """Show a member."""
        found = _shared(self._store, call.ctxt, image_id)
        mine = target(found, call.ctxt.project_id)
        self._store.policy.check(call.ctxt, "get_member", mine)
        for member in _seen(self._store, call.ctxt, found):
            if member.member == member_id:
                return views.member(member)
        raise _missing(found, member_id)

    @operation(asks=("modify_member",))
    def on_put(self, call: Call, image_id: str, member_id: str) -> Any:
        """Accept the image or reject it, as the project that it is shared with."""
        found = _shared(self._store, call.ctxt, image_id)
        conductor = self._store.conductor(call.ctxt, found.id)
        status = _text(call.body(), "status")
        if status not in _STATUSES:
            raise Invalid('Incorrect request: Status must be "pending", "accepted" or "rejected".')
        if not self._store.policy.allows(call.ctxt, "modify_member", target(found, member_id)):
            raise Forbidden(f"Not allowed to update members for image {found.id}.")
        conductor.update_image_member(call.ctxt, found.id, member_id, status)
        return views.member(_one(self._store, found, member_id))

    @operation(asks=("delete_member",), status=204)
    def on_delete(self, call: Call, image_id: str, member_id: str) -> None:
        """Share the image with the project no more."""
        found = _shared(self._store, call.ctxt, image_id)
        conductor = self._store.conductor(call.ctxt, found.id)
        if not self._store.policy.allows(call.ctxt, "delete_member", target(found)):
            raise Forbidden(f"Not allowed to delete members for image {found.id}.")
        conductor.delete_image_member(call.ctxt, found.id, member_id)


def _shared(store: Store, ctxt: RequestContext, image_id: str) -> Image:
    """Return an image that can have members. Raises ImageNotFound, Forbidden."""
    found = store.find(ctxt, image_id)
    if found.visibility != "shared":
        raise Forbidden("Only shared images have members.")
    return found


def _seen(store: Store, ctxt: RequestContext, found: Image) -> list[Member]:
    project = store.project(ctxt)
    every = project is None or project == found.project_id
    return [one for one in store.members(found.id) if every or one.member == project]


def _one(store: Store, found: Image, member: str) -> Member:
    for one in store.members(found.id):
        if one.member == member:
            return one
    raise _missing(found, member)


def _missing(found: Image, member: str) -> NotFound:
    return NotFound(f"{member} not found in the member list of the image {found.id}.")


def _text(body: Any, name: str) -> str:
    """Return a text of the body. Raises Invalid."""
    if not isinstance(body, dict):
        raise Invalid(f'Expected a {name} in the form: {{"{name}": "{name}_id"}}')
    if name not in body:
        raise Invalid(f"{name.capitalize()} not specified")
    value = body[name]
    if not isinstance(value, str):
        raise Invalid(f"{name.capitalize()} must be a string")
    return value
