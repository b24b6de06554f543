"""`/types`: kinds of volumes, one for each storage and what administrators add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from api.volume import filters, queries, schemas, views
from api.volume.call import Call, operation
from api.volume.resources.volumes import truth
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.types import VolumeTypeEdit
from db.reads.keyset import MarkerNotFound, Page
from db.reads.volumes import volumes
from db.reads.volumes.volumes import VolumeType

_PUBLIC = "os-volume-type-access:is_public"
_FILTERED_SINCE = 52
_SORTABLE: Mapping[str, Callable[[VolumeType], Any]] = {
    "id": lambda one: one.id,
    "name": lambda one: one.name,
    "created_at": lambda one: one.created_at,
}


def find_type(call: Call, type_id: str) -> VolumeType:
    """Return a type that the user sees, by its id or name. Raises NotFound."""
    for one in call.read(volumes.types, call.reach):
        if type_id in (one.id, one.name):
            return one
    raise NotFound(f"Volume type {type_id} could not be found.")


def _default(call: Call) -> VolumeType:
    """Return the type of volumes whose users name none. Raises NotFound without one."""
    name = call.cloud.conf.volumes.default_type
    found = call.read(volumes.types, call.reach)
    mine = call.read(volumes.default_types, call.project).get(call.project)
    if mine is not None:
        return find_type(call, mine)
    public = [one for one in found if one.is_public]
    shared = [one for one in public if one.extra_specs.get("storage:shared") == "True"]
    named = [one for one in found if one.name == name]
    for one in (*named, *shared, *public) if not name or named else ():
        return one
    raise NotFound("Default volume type can not be found.")


def _listed(call: Call) -> list[VolumeType]:
    """Return the types of a list by ``is_public``, which only administrators may choose."""
    asked = (call.query.last("is_public") or "true").lower()
    if not call.is_admin or (asked != "none" and call.query.boolean("is_public", default=True)):
        return call.read(volumes.types, call.project)
    return call.read(volumes.types, None, public=None if asked == "none" else False)


def _has_specs(call: Call, one: VolumeType) -> bool:
    """Return whether a type has the extra specs that are asked for, as the user sees them."""
    if call.version < _FILTERED_SINCE:
        return True
    wanted = queries.mapping(call, "extra_specs")
    shown = views.visible_specs(call, one.extra_specs)
    return all(shown.get(name) == value for name, value in wanted.items())


def _paged(found: list[VolumeType], page: Page, offset: int) -> list[VolumeType]:
    """Return one page. Raises MarkerNotFound."""
    first = 0
    if page.marker is not None:
        ids = [one.id for one in found]
        if page.marker not in ids:
            raise MarkerNotFound
        first = ids.index(page.marker) + 1
    return found[first + offset :][: page.limit]


class Types:
    """Volume types."""

    @operation("volume_extension:type_get_all")
    def index(self, call: Call) -> Any:
        """List types."""
        filters.require_known(call, "volume_type", since=_FILTERED_SINCE)
        shown = [one for one in _listed(call) if _has_specs(call, one)]
        keys = queries.order(call, _SORTABLE)
        for key, descending in reversed(keys):
            shown.sort(key=_SORTABLE[key], reverse=descending)
        page, offset = queries.page(call)
        found = _paged(shown, page, offset)
        answer: dict[str, Any] = {"volume_types": [views.volume_type(call, one) for one in found]}
        if found and len(found) == page.limit:
            answer["volume_type_links"] = queries.following(call, "types", found[-1].id)
        return answer

    @operation(
        "volume_extension:type_get",
        asks=(
            "volume_extension:access_types_extra_specs",
            "volume_extension:access_types_qos_specs_id",
        ),
    )
    def show(self, call: Call, type_id: str) -> Any:
        """Show a type, or the default one."""
        found = _default(call) if type_id == "default" else find_type(call, type_id)
        return {"volume_type": views.volume_type(call, found)}

    @operation("volume_extension:type_create", body=schemas.TYPE_CREATE)
    def create(self, call: Call) -> Any:
        """Make a type."""
        asked = call.body["volume_type"]
        made = call.conductor.create_volume_type(
            call.ctxt,
            VolumeTypeEdit(
                _name(asked),
                asked.get("description"),
                truth(asked.get(_PUBLIC, True)),
                _texts(asked.get("extra_specs") or {}),
            ),
        )
        return {"volume_type": views.new_type(find_type(call, made))}

    @operation("volume_extension:type_update", body=schemas.TYPE_UPDATE)
    def update(self, call: Call, type_id: str) -> Any:
        """Change a type."""
        asked, found = call.body["volume_type"], find_type(call, type_id)
        if all(value is None for value in asked.values()):
            raise Invalid(
                "Specify volume type name, description, is_public or a combination thereof."
            )
        public = asked.get("is_public")
        edit = VolumeTypeEdit(
            _name(asked),
            asked.get("description"),
            None if public is None else truth(public),
        )
        call.conductor.edit_volume_type(call.ctxt, found.id, edit)
        return {"volume_type": views.changed_type(find_type(call, found.id))}

    @operation("volume_extension:type_delete", status=202)
    def delete(self, call: Call, type_id: str) -> None:
        """Delete a type."""
        call.conductor.delete_volume_type(call.ctxt, find_type(call, type_id).id)

    @operation("volume_extension:volume_type_access:get_all_for_type")
    def access(self, call: Call, type_id: str) -> Any:
        """List the projects that may use a type."""
        found = find_type(call, type_id)
        if found.is_public:
            raise NotFound("Access list not available for public volume types.")
        projects = call.read(volumes.type_access, found.id)
        shown = [{"volume_type_id": found.id, "project_id": one} for one in projects]
        return {"volume_type_access": shown}

    @operation(
        "volume_extension:volume_type_access:addProjectAccess",
        status=202,
        body=schemas.ADD_ACCESS,
    )
    def add_access(self, call: Call, type_id: str) -> None:
        """Let a project use a type."""
        project = call.body["addProjectAccess"]["project"]
        found = find_type(call, type_id)
        call.conductor.allow_volume_type(call.ctxt, found.id, project, wanted=True)

    @operation(
        "volume_extension:volume_type_access:addProjectAccess",
        status=202,
        body=schemas.REMOVE_ACCESS,
    )
    def remove_access(self, call: Call, type_id: str) -> None:
        """Let a project use a type no more."""
        project = call.body["removeProjectAccess"]["project"]
        found = find_type(call, type_id)
        call.conductor.allow_volume_type(call.ctxt, found.id, project, wanted=False)


class ExtraSpecs:
    """The extra specs of a type."""

    @operation(
        "volume_extension:types_extra_specs:index",
        asks=("volume_extension:types_extra_specs:read_sensitive",),
    )
    def index(self, call: Call, type_id: str) -> Any:
        """List them."""
        return {"extra_specs": views.visible_specs(call, find_type(call, type_id).extra_specs)}

    @operation("volume_extension:types_extra_specs:index")
    def show(self, call: Call, type_id: str, key: str) -> Any:
        """Show one."""
        specs = views.visible_specs(call, find_type(call, type_id).extra_specs)
        if key not in specs:
            raise _no_spec(type_id, key)
        return {key: specs[key]}

    @operation("volume_extension:types_extra_specs:create", body=schemas.EXTRA_SPECS)
    def create(self, call: Call, type_id: str) -> Any:
        """Add or change some."""
        found, asked = find_type(call, type_id), _texts(call.body["extra_specs"])
        self._set(call, found, {**found.extra_specs, **asked})
        return {"extra_specs": asked}

    @operation("volume_extension:types_extra_specs:create", body=schemas.EXTRA_SPEC)
    def update(self, call: Call, type_id: str, key: str) -> Any:
        """Set one."""
        if key not in call.body:
            raise Invalid("Request body and URI mismatch")
        found, asked = find_type(call, type_id), _texts(call.body)
        self._set(call, found, {**found.extra_specs, **asked})
        return asked

    @operation("volume_extension:types_extra_specs:create", status=202)
    def delete(self, call: Call, type_id: str, key: str) -> None:
        """Delete one."""
        found = find_type(call, type_id)
        if key not in found.extra_specs:
            raise _no_spec(type_id, key)
        self._set(call, found, {k: v for k, v in found.extra_specs.items() if k != key})

    @staticmethod
    def _set(call: Call, found: VolumeType, specs: Mapping[str, str]) -> None:
        edit = VolumeTypeEdit(extra_specs=dict(specs))
        call.conductor.edit_volume_type(call.ctxt, found.id, edit)


def _name(asked: Mapping[str, Any]) -> str | None:
    """Return the name that is given, if any. Raises Invalid for an empty one."""
    name: str | None = asked.get("name")
    if name is not None and not name.strip():
        raise Invalid("Volume type name can not be empty.")
    return name


def _no_spec(type_id: str, key: str) -> NotFound:
    return NotFound(f"Volume Type {type_id} has no extra specs with key {key}.")


def _texts(specs: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value or "") for name, value in specs.items()}


TYPE_ACTIONS: Mapping[str, str] = {
    "addProjectAccess": "add_access",
    "removeProjectAccess": "remove_access",
}
