"""Metadata definitions: which properties of images, flavors and volumes mean something.

Those of this cloud are built in (``catalog``) and can't be changed; administrators write
others, which are in the database. Answers and refusals are Glance's (api/v2/metadef_*.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from api.image.metadefs import catalog as metadef_catalog
from api.image.metadefs import schemas as metadef_schemas
from api.image.metadefs import views as metadef_views
from api.image.metadefs.kinds import (
    KINDS,
    OBJECTS,
    PROPERTIES,
    RESOURCE_TYPES,
    TAGS,
    Kind,
    item_of,
    items_of,
    kind_of,
    prefix,
)
from api.image.metadefs.kinds import namespace as namespace_of
from api.image.metadefs.pages import filtered, in_order, page
from api.image.metadefs.store import Definitions
from api.image.store import Store
from api.plain import Call, operation
from common.clock import iso
from common.errors import Conflict, NotFound
from conductor.rpc.images import MetadefItem
from db.reads.images.metadefs import Namespace
from web.guard import Params, Reply, Target


def _own(call: Call, _: Params) -> Target:
    return {"project_id": call.ctxt.project_id, "visibility": ""}


class Namespaces:
    """``/v2/metadefs/namespaces``."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    @operation("get_metadef_namespaces", on=_own)
    def on_get(self, call: Call) -> Any:
        """List namespaces, one page."""
        given = dict(call.pairs)
        found = in_order(filtered(self._definitions.all(call.ctxt), given), given)
        shown, limit = page(found, given, lambda one: one.name)
        rest = {name: value for name, value in given.items() if name != "marker"}
        body: dict[str, Any] = {
            "namespaces": [metadef_views.brief(one) for one in shown],
            "first": _link(rest),
            "schema": "/v2/schemas/metadefs/namespaces",
        }
        if shown and len(shown) == limit:
            body["next"] = _link({**rest, "marker": shown[-1].name})
        return body

    @operation(asks=("add_metadef_namespace",), status=201)
    def on_post(self, call: Call) -> Any:
        """Make a namespace, with all that it defines."""
        definitions, ctxt = self._definitions, call.ctxt
        body = metadef_schemas.validated(call.body(), metadef_schemas.NAMESPACE)
        new, items = namespace_of(body, ctxt.project_id or ""), items_of(body)
        for rule in ("add_metadef_namespace", *(kind_of(one.kind).add for one in items)):
            definitions.store.policy.check(ctxt, rule, {"project_id": ctxt.project_id})
        if metadef_catalog.find(new.name) is not None:
            raise Conflict(f"The metadata definition namespace={new.name} already exists.")
        conductor = definitions.store.conductor(ctxt)
        conductor.create_metadef_namespace(ctxt, new, items)
        made = definitions.find(ctxt, new.name)
        location = {"Location": metadef_views.href(made.name)}
        return Reply(metadef_views.whole(made), headers=location)


class NamespaceItem:
    """``/v2/metadefs/namespaces/{namespace}``."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    @operation(asks=("get_metadef_namespace",))
    def on_get(self, call: Call, namespace: str) -> Any:
        """Show a namespace with all that it defines; for a resource type with its prefix."""
        found = self._definitions.find(call.ctxt, namespace)
        self._definitions.check(call.ctxt, found, *(kind.list for kind in KINDS))
        wanted = dict(call.pairs).get("resource_type", "")
        return metadef_views.whole(found, prefix(found, wanted))

    @operation(asks=("modify_metadef_namespace",))
    def on_put(self, call: Call, namespace: str) -> Any:
        """Change a namespace; what isn't said gets its default."""
        definitions, ctxt = self._definitions, call.ctxt
        body = metadef_schemas.validated(call.body(), metadef_schemas.NAMESPACE)
        found = definitions.changeable(ctxt, namespace, "modify_metadef_namespace")
        new = namespace_of(body, ctxt.project_id or "")
        if new.name != found.name and metadef_catalog.find(new.name) is not None:
            raise Conflict(f"The metadata definition namespace={new.name} already exists.")
        definitions.store.conductor(ctxt).update_metadef_namespace(ctxt, found.name, new)
        return metadef_views.brief(definitions.find(ctxt, new.name))

    @operation(asks=("delete_metadef_namespace",), status=204)
    def on_delete(self, call: Call, namespace: str) -> None:
        """Delete a namespace that isn't protected."""
        found = self._definitions.changeable(call.ctxt, namespace, "delete_metadef_namespace")
        conductor = self._definitions.store.conductor(call.ctxt)
        conductor.delete_metadef_namespace(call.ctxt, found.name)


class Associations:
    """``…/resource_types``: what a namespace defines of one kind, without a way to remove all."""

    def __init__(self, definitions: Definitions, kind: Kind) -> None:
        self._definitions, self.noun = definitions, kind

    @operation(asks=("{noun.list}", "{noun.see}"))
    def on_get(self, call: Call, namespace: str) -> Any:
        """List what the namespace defines."""
        kind = self.noun
        found = self._definitions.find(call.ctxt, namespace)
        self._definitions.check(call.ctxt, found, kind.list)
        shown = kind.views(found)
        if not self._definitions.shows(call.ctxt, found, kind.see):
            shown = type(shown)()
        given = dict(call.pairs)
        if isinstance(shown, list) and {"limit", "marker"} & given.keys():
            shown, _ = page(shown, given, lambda one: one["name"])
        return {kind.listed: shown}

    @operation(asks=("{noun.add}",), status=201)
    def on_post(self, call: Call, namespace: str) -> Any:
        """Define one more."""
        kind, definitions = self.noun, self._definitions
        body = metadef_schemas.validated(call.body(), dict(kind.schema))
        found = definitions.changeable(call.ctxt, namespace, kind.add)
        item = item_of(kind, body)
        _change(definitions, call, found, kind, [], [item])
        return _shown(definitions, call, namespace, kind, item.name)


class Collection(Associations):
    """``…/properties`` and ``…/objects``."""

    @operation(asks=("delete_metadef_namespace",), status=204)
    def on_delete(self, call: Call, namespace: str) -> None:
        """Remove all of the kind."""
        self._remove_all(call, namespace, "delete_metadef_namespace")

    def _remove_all(self, call: Call, namespace: str, *rules: str) -> None:
        found = self._definitions.changeable(call.ctxt, namespace, *rules)
        _change(self._definitions, call, found, self.noun, None, [])


class TagCollection(Collection):
    """``…/tags``."""

    @operation(asks=("add_metadef_tags",), status=201)
    def on_post(self, call: Call, namespace: str) -> Any:
        """Define these tags, in place of all others unless they are to be added."""
        definitions = self._definitions
        body = metadef_schemas.validated(call.body(), metadef_schemas.TAGS)
        found = definitions.changeable(call.ctxt, namespace, "add_metadef_tags")
        items = [item_of(TAGS, one) for one in body.get("tags", ())]
        header = call.request.get_header("X-Openstack-Append") if call.request else None
        appends = (header or "").strip().lower() in {"1", "t", "true", "on", "y", "yes"}
        _change(definitions, call, found, TAGS, [] if appends else None, items)
        return {"tags": [{"name": one.name} for one in items]}

    @operation(asks=("delete_metadef_namespace", "delete_metadef_tags"), status=204)
    def on_delete(self, call: Call, namespace: str) -> None:
        """Remove all tags."""
        self._remove_all(call, namespace, "delete_metadef_namespace", "delete_metadef_tags")


class AssociationItem:
    """``…/resource_types/{name}``."""

    def __init__(self, definitions: Definitions, kind: Kind) -> None:
        self._definitions, self.noun = definitions, kind

    @operation(asks=("{noun.remove}",), status=204)
    def on_delete(self, call: Call, namespace: str, name: str) -> None:
        """Remove one."""
        found = self._definitions.changeable(call.ctxt, namespace, self.noun.remove)
        _change(self._definitions, call, found, self.noun, [name], [])


class DefinedItem(AssociationItem):
    """``…/properties/{name}`` and ``…/objects/{name}``."""

    @operation(asks=("{noun.see}",))
    def on_get(self, call: Call, namespace: str, name: str) -> Any:
        """Show one; a property of a resource type has the prefix of that."""
        wanted = dict(call.pairs).get("resource_type", "")
        if wanted and self.noun is PROPERTIES:
            found = self._definitions.find(call.ctxt, namespace)
            start = prefix(found, wanted)
            if not start or not name.startswith(start):
                raise NotFound(
                    f"Property {name} does not start with the expected resource type "
                    f"association prefix of '{start}'."
                )
            name = name.removeprefix(start)
        return _shown(self._definitions, call, namespace, self.noun, name)

    @operation(asks=("{noun.change}",))
    def on_put(self, call: Call, namespace: str, name: str) -> Any:
        """Change one, its name too."""
        kind, definitions = self.noun, self._definitions
        body = metadef_schemas.validated(call.body(), dict(kind.schema))
        found = definitions.changeable(call.ctxt, namespace, kind.change)
        item = item_of(kind, body)
        _change(definitions, call, found, kind, [name], [item])
        return _shown(definitions, call, namespace, kind, item.name)


class TagItem(DefinedItem):
    """``…/tags/{name}``."""

    @operation(asks=("{noun.add}",), status=201)
    def on_post(self, call: Call, namespace: str, name: str) -> Any:
        """Define a tag."""
        definitions = self._definitions
        metadef_schemas.validated({"name": name}, metadef_schemas.TAG)
        found = definitions.changeable(call.ctxt, namespace, TAGS.add)
        _change(definitions, call, found, TAGS, [], [MetadefItem(TAGS.name, name)])
        return _shown(definitions, call, namespace, TAGS, name)


class ResourceTypes:
    """``/v2/metadefs/resource_types``."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    @operation("list_metadef_resource_types", on=_own)
    def on_get(self, call: Call) -> Any:
        """List the resource types that there are, and those of namespaces."""
        since = iso(metadef_catalog.SINCE)
        names: dict[str, str | None] = dict.fromkeys(metadef_catalog.RESOURCE_TYPES, since)
        for namespace in self._definitions.all(call.ctxt):
            for one in namespace.of("resource_type"):
                names.setdefault(one.name, iso(one.created_at))
        return metadef_views.resource_types(sorted(names.items()))


# --- parts


def _change(
    definitions: Definitions,
    call: Call,
    found: Namespace,
    kind: Kind,
    removed: list[str] | None,
    items: list[MetadefItem],
) -> None:
    conductor = definitions.store.conductor(call.ctxt)
    conductor.change_metadef_items(call.ctxt, found.name, kind.name, removed, items)


def _shown(definitions: Definitions, call: Call, namespace: str, kind: Kind, name: str) -> Any:
    found = definitions.find(call.ctxt, namespace)
    definitions.check(call.ctxt, found, kind.see)
    item = found.find(kind.name, name)
    if item is None:
        raise NotFound(
            f"The metadata definition {kind.name} with name={name} was not found in "
            f"namespace={namespace}."
        )
    return kind.view(found.name, item)


def _link(given: Mapping[str, str]) -> str:
    return f"{metadef_views.PATH}?{urlencode(given)}" if given else metadef_views.PATH


def routes(store: Store) -> dict[str, object]:
    """Path → what serves it."""
    definitions = Definitions(store)
    item = f"{metadef_views.PATH}/{{namespace}}"
    collections: Mapping[str, object] = {
        "properties": Collection(definitions, PROPERTIES),
        "objects": Collection(definitions, OBJECTS),
        "tags": TagCollection(definitions, TAGS),
        "resource_types": Associations(definitions, RESOURCE_TYPES),
    }
    items: Mapping[str, object] = {
        "properties": DefinedItem(definitions, PROPERTIES),
        "objects": DefinedItem(definitions, OBJECTS),
        "tags": TagItem(definitions, TAGS),
        "resource_types": AssociationItem(definitions, RESOURCE_TYPES),
    }
    return {
        metadef_views.PATH: Namespaces(definitions),
        item: NamespaceItem(definitions),
        "/v2/metadefs/resource_types": ResourceTypes(definitions),
        **{f"{item}/{name}/{{name}}": one for name, one in items.items()},
        **{f"{item}/{name}": one for name, one in collections.items()},
    }
