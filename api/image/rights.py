"""What the Image API's policy says of a change, whichever API passes it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from common.errors import Forbidden
from conductor.rpc.images import ImageEdit
from db.reads.images.images import Image

#: the policy's target: an image that everybody sees
PUBLIC = {"project_id": None, "member_id": None, "visibility": "public"}

#: visibility → the rule of those who may give it to an image
_GIVEN_BY: Mapping[str, str] = {"public": "publicize_image", "community": "communitize_image"}

ADMIN = "context_is_admin"


class Rights(Protocol):
    """The user's rights by the policy."""

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Return whether the policy allows it."""

    def check(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy allows it."""


def target(found: Image, member: str | None = None) -> Mapping[str, str | None]:
    """Return what the policy judges."""
    return {
        "project_id": found.project_id,
        "member_id": member,
        "visibility": found.visibility,
    }


def check_visibility(rights: Rights, visibility: str, owner: str | None) -> None:
    """Raise Forbidden unless the user may give this visibility to an image of the owner."""
    rule = _GIVEN_BY.get(visibility)
    if rule is not None:
        rights.check(rule, {**PUBLIC, "project_id": owner})


def check_edits(rights: Rights, found: Image, asked: Sequence[ImageEdit]) -> None:
    """Raise Forbidden unless the user may change this of an image."""
    rights.check("modify_image", target(found))
    for edit in asked:
        if edit.name == "visibility" and edit.op != "remove":
            check_visibility(rights, edit.value, found.project_id)
        if edit.name == "owner" and not rights.allows(ADMIN):
            raise Forbidden("Owner can't be updated by non admin.")
