"""Kinds of metadata definitions, and what bodies say of them (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from api.image.metadefs import schemas as metadef_schemas
from api.image.metadefs import views as metadef_views
from common.errors import Invalid
from conductor.rpc.images import MetadefItem, MetadefNamespace
from db.reads.images.metadefs import Item, Namespace

_LONGEST = 80


@dataclass(frozen=True)
class Kind:
    """A kind of what a namespace defines."""

    name: str
    """The name used in the database and in messages."""
    plural: str
    """The name used in paths."""
    listed: str
    """The key of a list."""
    schema: Mapping[str, Any]
    see: str
    """The policy's rule to show one; the next ones likewise."""
    list: str
    add: str
    change: str
    remove: str
    view: Callable[[str, Item], Any]
    views: Callable[[Namespace], Any]


def _rules(noun: str, plural: str) -> dict[str, str]:
    return {
        "see": f"get_metadef_{noun}",
        "list": f"get_metadef_{plural}",
        "add": f"add_metadef_{noun}",
        "change": f"modify_metadef_{noun}",
    }


PROPERTIES = Kind(
    "property",
    "properties",
    "properties",
    metadef_schemas.PROPERTY,
    **_rules("property", "properties"),
    remove="remove_metadef_property",
    view=lambda _, one: metadef_views.metadef_property(one),
    views=lambda found: {
        name: {"name": name, **one} for name, one in metadef_views.all_properties(found).items()
    },
)
OBJECTS = Kind(
    "object",
    "objects",
    "objects",
    metadef_schemas.OBJECT,
    **_rules("object", "objects"),
    remove="delete_metadef_object",
    view=metadef_views.metadef_object,
    views=lambda found: [
        metadef_views.metadef_object(found.name, one) for one in found.of("object")
    ],
)
TAGS = Kind(
    "tag",
    "tags",
    "tags",
    metadef_schemas.TAG,
    **_rules("tag", "tags"),
    remove="delete_metadef_tag",
    view=lambda _, one: metadef_views.tag(one),
    views=lambda found: [{"name": one.name} for one in found.of("tag")],
)
RESOURCE_TYPES = Kind(
    "resource_type",
    "resource_types",
    "resource_type_associations",
    metadef_schemas.RESOURCE_TYPE,
    see="get_metadef_resource_type",
    list="list_metadef_resource_types",
    add="add_metadef_resource_type_association",
    change="add_metadef_resource_type_association",
    remove="remove_metadef_resource_type_association",
    view=lambda _, one: metadef_views.association(one),
    views=lambda found: [metadef_views.association(one) for one in found.of("resource_type")],
)
KINDS = (PROPERTIES, OBJECTS, TAGS, RESOURCE_TYPES)


def kind_of(name: str) -> Kind:
    """Return the kind of a name."""
    return next(kind for kind in KINDS if kind.name == name)


def prefix(found: Namespace, resource_type: str) -> str:
    """Return the prefix that a resource type has in a namespace; empty: it has none."""
    item = found.find("resource_type", resource_type)
    return "" if item is None else str(item.body.get("prefix") or "")


def namespace(body: Mapping[str, Any], project_id: str) -> MetadefNamespace:
    """Return the namespace that a body describes. Raises Invalid."""
    if not body["namespace"]:
        raise Invalid("Couldn't create metadata namespace: it has no name")
    return MetadefNamespace(
        name=body["namespace"],
        project_id=body.get("owner") or project_id,
        display_name=body.get("display_name"),
        description=body.get("description"),
        visibility=body.get("visibility", "private"),
        protected=body.get("protected", False),
    )


def item_of(kind: Kind, body: Mapping[str, Any], name: str | None = None) -> MetadefItem:
    """Return what a body defines. Raises Invalid for one without a name, or with a long one."""
    named = body.get("name") if name is None else name
    if not isinstance(named, str) or not 0 < len(named) <= _LONGEST:
        raise Invalid(f"The name of a {kind.name} has 1 to {_LONGEST} characters.")
    said = {key: value for key, value in body.items() if key != "name"}
    return MetadefItem(kind.name, named, said)


def items_of(body: Mapping[str, Any]) -> list[MetadefItem]:
    """Return all that a new namespace defines. Raises Invalid."""
    properties = body.get("properties", {})
    found = [item_of(PROPERTIES, one, name) for name, one in properties.items()]
    for key, kind in (
        ("objects", OBJECTS),
        ("tags", TAGS),
        ("resource_type_associations", RESOURCE_TYPES),
    ):
        found += [item_of(kind, one) for one in body.get(key, ())]
    return found
