"""`/images`, before 2.36 (their metadata before 2.39): the image API's images, by its rules.

Facts from nova's images.py, image_metadata.py and views/images.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import images as schemas
from api.compute.views import images as views
from api.image import documents
from api.image.rights import PUBLIC, check_edits, target
from common.errors import Forbidden, ImageNotFound, Invalid, NotFound
from db.reads.images import images
from db.reads.images.images import Condition, Image, Reach
from db.reads.keyset import MarkerNotFound, Page

PATH = "images"
_UNTIL, _METADATA_UNTIL = "2.35", "2.38"
#: parameter → the property that it filters by
_PROPERTIES = {"server": "instance_uuid", "type": "image_type"}
_NUMBERS = {"minRam": "min_ram_mib", "minDisk": "min_disk_gib"}
_PREFIX = "property-"
_METADATA_LIMIT = 128


class Images:
    """The images that a project sees."""

    @operation(None, until=_UNTIL, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List images."""
        return self._listed(call, PATH, [views.brief(call, one) for one in self._page(call)])

    @operation(None, until=_UNTIL, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List images in detail."""
        shown = [views.image(call, one) for one in self._page(call)]
        return self._listed(call, f"{PATH}/detail", shown)

    @operation(None, until=_UNTIL)
    def show(self, call: Call, image: str) -> Any:
        """Show an image."""
        return {"image": views.image(call, _find(call, image))}

    @operation(None, until=_UNTIL, status=204)
    def delete(self, call: Call, image: str) -> None:
        """Delete an image."""
        found = _find(call, image)
        try:
            call.check("delete_image", target(found))
            _require_own(call, found)
            call.conductor.delete_image(call.ctxt, found.id)
        except Forbidden as error:
            raise Forbidden("You are not allowed to delete the image.") from error

    def _page(self, call: Call) -> Sequence[Image]:
        limit, marker = call.query.page(call.max_limit)
        call.check("get_images")
        if not call.allows("get_image", PUBLIC):
            return []
        try:
            return call.read(
                images.listing,
                _conditions(call),
                _properties(call),
                page=Page(limit=limit, marker=marker),
                project=call.reach,
                reach=Reach(project=call.ctxt.project_id),
            )
        except MarkerNotFound as error:
            raise Invalid(f"Image {marker} could not be found.") from error

    @staticmethod
    def _listed(call: Call, path: str, shown: Sequence[Any]) -> Any:
        answer: dict[str, Any] = {"images": shown}
        if shown and len(shown) == call.query.page(call.max_limit)[0]:
            answer["images_links"] = call.links.after(path, call.query, shown[-1]["id"])
        return answer


class ImageMetadata:
    """The properties of an image."""

    @operation(None, until=_METADATA_UNTIL)
    def index(self, call: Call, image: str) -> Any:
        """List properties."""
        return {"metadata": _find(call, image).properties}

    @operation(None, until=_METADATA_UNTIL)
    def show(self, call: Call, image: str, key: str) -> Any:
        """Show a property."""
        found = _find(call, image).properties
        if key not in found:
            raise NotFound
        return {"meta": {key: found[key]}}

    @operation(None, until=_METADATA_UNTIL, body=schemas.SET_METADATA)
    def create(self, call: Call, image: str) -> Any:
        """Add or change properties; the answer has all."""
        found = _find(call, image)
        return {"metadata": _set(call, found, {**found.properties, **call.body["metadata"]})}

    @operation(None, until=_METADATA_UNTIL, body=schemas.SET_METADATA)
    def update_all(self, call: Call, image: str) -> Any:
        """Replace all properties."""
        return {"metadata": _set(call, _find(call, image), call.body["metadata"])}

    @operation(None, until=_METADATA_UNTIL, body=schemas.SET_ITEM)
    def update(self, call: Call, image: str, key: str) -> Any:
        """Set a property."""
        item = call.body["meta"]
        if key not in item:
            raise Invalid("Request body and URI mismatch")
        found = _find(call, image)
        _set(call, found, {**found.properties, **item})
        return {"meta": item}

    @operation(None, until=_METADATA_UNTIL, status=204)
    def delete(self, call: Call, image: str, key: str) -> None:
        """Delete a property."""
        found = _find(call, image)
        if key not in found.properties:
            raise NotFound("Invalid metadata key")
        _set(call, found, {name: one for name, one in found.properties.items() if name != key})


def _find(call: Call, image_id: str) -> Image:
    found = call.read(images.get, image_id, call.reach)
    if found is None or not call.allows("get_image", target(found)):
        raise NotFound("Image not found.")
    return found


def _require_own(call: Call, found: Image) -> None:
    """Raise Forbidden for another project's image; send the user's rights to the conductor."""
    call.ctxt.is_admin = call.is_admin
    owner = found.project_id
    if owner is None or not (call.is_admin or owner == call.ctxt.project_id):
        raise Forbidden(f"Not authorized for image {found.id}.")


def _set(call: Call, found: Image, wanted: dict[str, str]) -> dict[str, str]:
    """Let an image have these properties and no others, by the rules of the Image API's PATCH.

    Raises Forbidden, NotFound, Invalid.
    """
    if len(wanted) > _METADATA_LIMIT:
        raise Forbidden("Image metadata limit exceeded")
    edits = documents.metadata_edits(found.properties, wanted)
    check_edits(call, found, edits)
    _require_own(call, found)
    try:
        if edits:
            call.conductor.edit_image(call.ctxt, found.id, edits)
    except ImageNotFound as error:
        raise NotFound("Image not found.") from error
    return wanted


def _conditions(call: Call) -> list[Condition]:
    found = []
    name, status = call.query.last("name"), call.query.last("status")
    if name is not None:
        found.append(Condition("name", "in", [name]))
    if status is not None:
        found.append(Condition("status", "in", [status.lower()]))
    since = call.query.moment("changes-since")
    if since is not None:
        found.append(Condition("updated_at", "gte", since))
    for parameter, column in _NUMBERS.items():
        number = call.query.number(parameter)
        if number is not None:
            found.append(Condition(column, "eq", number))
    return found


def _properties(call: Call) -> dict[str, str]:
    found = {}
    for parameter in call.query:
        value = call.query.last(parameter) or ""
        if parameter.startswith(_PREFIX):
            found[parameter.removeprefix(_PREFIX)] = value
        elif parameter in _PROPERTIES:
            # A server may be named by its URL.
            found[_PROPERTIES[parameter]] = value.rpartition("/")[2]
    return found
