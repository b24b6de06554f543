"""Traits and resource classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from common.errors import Conflict, Invalid
from placement.db import names
from placement.operation import DONE, Answer, Call, Services, operation
from placement.schemas import memberships as schemas
from placement.schemas.common import BODY
from web.schemas import Validator

_TRAIT_RULE = (
    "The trait is invalid. A valid trait must be no longer than 255 characters, start "
    'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
)
_check_trait = Validator(schemas.CUSTOM_TRAIT, replace(BODY, complaint=_TRAIT_RULE))
_check_class = Validator(schemas.RESOURCE_CLASS, BODY)
_BOOLEANS = {"true": True, "false": False}


class Traits:
    """`/traits`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("traits:list", since="1.6", query=schemas.TRAIT_LIST, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List traits, by name and by whether any provider has them."""
        among, prefix = _name_filter(call.last("name"))
        associated = call.last("associated")
        if associated is not None and associated.lower() not in _BOOLEANS:
            raise Invalid('The query parameter "associated" only accepts "true" or "false"')
        found = self.services.database.read(
            lambda c: names.traits.listed(
                c,
                among=among,
                prefix=prefix,
                associated=None if associated is None else _BOOLEANS[associated.lower()],
            )
        )
        modified = max((one.created_at for one in found), default=None)
        return Answer({"traits": [one.name for one in found]}, modified=modified)


def _name_filter(text: str | None) -> tuple[list[str] | None, str | None]:
    if text is None:
        return None, None
    kind, colon, value = text.partition(":")
    if not colon:
        raise Invalid(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{text}"'
        )
    return value.split(",") if kind == "in" else None, value if kind == "startswith" else None


class Trait:
    """`/traits/{name}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("traits:show", since="1.6")
    def on_get(self, call: Call, name: str) -> Answer:
        """Check that a trait exists."""
        found = self.services.database.read(lambda c: names.traits.find(c, name))
        return Answer(status=204, modified=found.created_at)

    @operation("traits:update", since="1.6")
    def on_put(self, call: Call, name: str) -> Answer:
        """Create a custom trait."""
        _check_trait(name)
        added = self.services.database.write(lambda c: names.traits.ensure(c, name))
        found = self.services.database.read(lambda c: names.traits.find(c, name))
        return Answer(
            status=201 if added else 204,
            location=f"{call.script_name}/traits/{name}",
            modified=found.created_at,
        )

    @operation("traits:delete", since="1.6")
    def on_delete(self, call: Call, name: str) -> Answer:
        """Delete a custom trait that no provider has."""
        self.services.database.write(
            lambda c: names.traits.remove(
                c,
                name,
                standard=f"Cannot delete standard trait {name}.",
                used=f"The trait {name} is in use by a resource provider.",
            )
        )
        return DONE


class ResourceClasses:
    """`/resource_classes`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_classes:list", since="1.2", accept=True)
    def on_get(self, call: Call) -> Answer:
        """List all resource classes."""
        found = self.services.database.read(names.resource_classes.listed)
        modified = max((one.created_at for one in found), default=None)
        return Answer(
            {"resource_classes": [_view(call, one.name) for one in found]}, modified=modified
        )

    @operation("resource_classes:create", since="1.2", body=schemas.CREATE_CLASS)
    def on_post(self, call: Call) -> Answer:
        """Create a custom resource class."""
        name = call.body()["name"]
        if not self.services.database.write(lambda c: names.resource_classes.ensure(c, name)):
            raise Conflict(f"Conflicting resource class already exists: {name}")
        return Answer(status=201, location=_url(call, name), dated=False)


class ResourceClass:
    """`/resource_classes/{name}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_classes:show", since="1.2", accept=True)
    def on_get(self, call: Call, name: str) -> Answer:
        """Show a resource class."""
        found = self.services.database.read(lambda c: names.resource_classes.find(c, name))
        return Answer(_view(call, name), modified=found.created_at)

    @operation("resource_classes:update", since="1.2", body=schemas.PUT_CLASS)
    def on_put(self, call: Call, name: str) -> Answer:
        """Create a custom resource class if need be; before 1.7: rename it."""
        if call.version < 7:
            new = call.body()["name"]
            self.services.database.write(lambda c: names.rename_class(c, name, new))
            return Answer(_view(call, new), dated=False)
        _check_class({"name": name})
        added = self.services.database.write(lambda c: names.resource_classes.ensure(c, name))
        return Answer(status=201 if added else 204, location=_url(call, name), dated=False)

    @operation("resource_classes:delete", since="1.2")
    def on_delete(self, call: Call, name: str) -> Answer:
        """Delete a custom resource class that no provider has."""
        complaint = "Error in delete resource class:"
        self.services.database.write(
            lambda c: names.resource_classes.remove(
                c,
                name,
                standard=f"{complaint} Cannot delete standard resource class {name}.",
                used=f"{complaint} Cannot delete resource class {name}. "
                "Class is in use in inventory.",
            )
        )
        return DONE


def _url(call: Call, name: str) -> str:
    return f"{call.script_name}/resource_classes/{name}"


def _view(call: Call, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": _url(call, name)}]}
