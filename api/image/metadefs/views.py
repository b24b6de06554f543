"""Views of metadata definitions, in Glance's form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from common.clock import iso
from db.reads.images.metadefs import Item, Namespace

PATH = "/v2/metadefs/namespaces"


def href(namespace: str, *below: str) -> str:
    """Return the path of a namespace, or of something in it."""
    return "/".join((PATH, *(quote(one, safe=":") for one in (namespace, *below))))


def brief(found: Namespace) -> dict[str, Any]:
    """Return a namespace as a list shows it."""
    shown = {
        "namespace": found.name,
        "display_name": found.display_name,
        "description": found.description,
        "visibility": found.visibility,
        "protected": found.protected,
        "owner": found.project_id,
        **_times(found),
        "self": href(found.name),
        "schema": "/v2/schemas/metadefs/namespace",
    }
    types = [association(one) for one in found.of("resource_type")]
    return _without_nulls(shown) | ({"resource_type_associations": types} if types else {})


def whole(found: Namespace, prefix: str = "") -> dict[str, Any]:
    """Return a namespace with all that it defines; names of properties get the prefix."""
    shown = brief(found)
    properties = {f"{prefix}{name}": one for name, one in all_properties(found).items()}
    objects = [_prefixed(metadef_object(found.name, one), prefix) for one in found.of("object")]
    tags = [{"name": one.name} for one in found.of("tag")]
    for name, value in (("properties", properties), ("objects", objects), ("tags", tags)):
        if value:
            shown[name] = value
    return shown


def association(found: Item) -> dict[str, Any]:
    """Return an associated resource type."""
    return {"name": found.name, **_without_nulls(found.body), **_times(found)}


def metadef_property(found: Item) -> dict[str, Any]:
    """Return a property by itself."""
    return {"name": found.name, **_without_nulls(found.body)}


def all_properties(found: Namespace) -> dict[str, Any]:
    """Return the properties of a namespace by name."""
    return {one.name: _without_nulls(one.body) for one in found.of("property")}


def metadef_object(namespace: str, found: Item) -> dict[str, Any]:
    """Return an object."""
    return {
        "name": found.name,
        "required": [],
        "properties": {},
        **_without_nulls(found.body),
        **_times(found),
        "self": href(namespace, "objects", found.name),
        "schema": "/v2/schemas/metadefs/object",
    }


def tag(found: Item) -> dict[str, Any]:
    """Return a tag by itself."""
    return {"name": found.name, **_times(found)}


def resource_types(names: Iterable[tuple[str, str | None]]) -> dict[str, Any]:
    """Return all resource types: (name, since when)."""
    return {
        "resource_types": [
            {"name": name, "created_at": when, "updated_at": when} for name, when in names
        ]
    }


def _prefixed(shown: dict[str, Any], prefix: str) -> dict[str, Any]:
    named = {f"{prefix}{name}": one for name, one in shown["properties"].items()}
    return {
        **shown,
        "properties": named,
        "required": [f"{prefix}{name}" for name in shown["required"]],
    }


def _times(found: Namespace | Item) -> dict[str, str | None]:
    return {"created_at": iso(found.created_at), "updated_at": iso(found.updated_at)}


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
