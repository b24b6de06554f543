"""`/types`: kinds of volumes, one for each storage and what administrators add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import schemas, views
from api.volume.call import Call, operation
from common.errors import Invalid, NotFound
from conductor.messages import VolumeTypeEdit
from db.reads import volumes
from db.reads.volumes import VolumeType

_PUBLIC = "os-volume-type-access:is_public"


def _find(call: Call, type_id: str) -> VolumeType:
    for one in call.read(volumes.types, None if call.is_admin else call.project):
        if type_id in (one.id, one.name):
            return one
    raise NotFound(f"Volume type {type_id} could not be found.")


def _default(call: Call) -> VolumeType:
    """Return the type of volumes whose users name none. Raises NotFound without one."""
    name = call.cloud.conf.volumes.default_type
    found = call.read(volumes.types, None if call.is_admin else call.project)
    public = [one for one in found if one.is_public]
    shared = [one for one in public if one.extra_specs.get("storage:shared") == "True"]
    named = [one for one in found if one.name == name]
    for one in (*named, *shared, *public) if not name or named else ():
        return one
    raise NotFound("Default volume type can not be found.")


class Types:
    """Volume types."""

    @operation("volume_extension:type_get_all")
    def index(self, call: Call) -> Any:
        """List types."""
        asked = call.query.last("is_public")
        every = asked is None or asked.lower() == "none"
        public = None if every else call.query.boolean("is_public")
        everybody = call.is_admin and asked is not None
        found = call.read(volumes.types, None if everybody else call.project, public=public)
        return {"volume_types": [views.volume_type(call, one) for one in found]}

    @operation("volume_extension:type_get")
    def show(self, call: Call, type_id: str) -> Any:
        """Show a type, or the default one."""
        found = _default(call) if type_id == "default" else _find(call, type_id)
        return {"volume_type": views.volume_type(call, found)}

    @operation("volume_extension:type_create", body=schemas.TYPE_CREATE)
    def create(self, call: Call) -> Any:
        """Make a type."""
        asked = call.body["volume_type"]
        made = call.conductor.create_volume_type(
            call.ctxt,
            VolumeTypeEdit(
                asked["name"],
                asked.get("description"),
                _truth(asked.get(_PUBLIC, True)),
                _texts(asked.get("extra_specs") or {}),
            ),
        )
        return {"volume_type": views.volume_type(call, _find(call, made))}

    @operation("volume_extension:type_update", body=schemas.TYPE_UPDATE)
    def update(self, call: Call, type_id: str) -> Any:
        """Change a type."""
        asked, found = call.body["volume_type"], _find(call, type_id)
        if not asked:
            raise Invalid("Specify volume type name, description, is_public or both.")
        public = asked.get("is_public")
        edit = VolumeTypeEdit(
            asked.get("name"),
            asked.get("description"),
            None if public is None else _truth(public),
        )
        call.conductor.edit_volume_type(call.ctxt, found.id, edit)
        return {"volume_type": views.volume_type(call, _find(call, found.id))}

    @operation("volume_extension:type_delete", status=202)
    def delete(self, call: Call, type_id: str) -> None:
        """Delete a type."""
        call.conductor.delete_volume_type(call.ctxt, _find(call, type_id).id)

    @operation("volume_extension:volume_type_access:get_all_for_type")
    def access(self, call: Call, type_id: str) -> Any:
        """List the projects that may use a type."""
        found = _find(call, type_id)
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
        found = _find(call, type_id)
        call.conductor.allow_volume_type(call.ctxt, found.id, project, wanted=True)

    @operation(
        "volume_extension:volume_type_access:addProjectAccess",
        status=202,
        body=schemas.REMOVE_ACCESS,
    )
    def remove_access(self, call: Call, type_id: str) -> None:
        """Let a project use a type no more."""
        project = call.body["removeProjectAccess"]["project"]
        found = _find(call, type_id)
        call.conductor.allow_volume_type(call.ctxt, found.id, project, wanted=False)


class Encryption:
    """The encryption of a type: no storage of Proxmox VE encrypts volumes for a cloud."""

    @operation("volume_extension:volume_type_encryption:get")
    def index(self, call: Call, type_id: str) -> Any:
        """Show none, as Cinder does of a type without."""
        _find(call, type_id)
        return {}

    @operation("volume_extension:volume_type_encryption:create")
    def create(self, call: Call, type_id: str) -> Any:
        """Refuse to encrypt."""
        _find(call, type_id)
        raise Invalid("Invalid input received: volumes are not encrypted here.")

    @operation("volume_extension:volume_type_encryption:get")
    def item(self, call: Call, type_id: str, key: str) -> Any:
        """Find none."""
        _find(call, type_id)
        raise NotFound(f"Volume type encryption for type {type_id} does not exist.")


class ExtraSpecs:
    """The extra specs of a type."""

    @operation("volume_extension:types_extra_specs:index")
    def index(self, call: Call, type_id: str) -> Any:
        """List them."""
        return {"extra_specs": views.volume_type(call, _find(call, type_id))["extra_specs"]}

    @operation("volume_extension:types_extra_specs:index")
    def show(self, call: Call, type_id: str, key: str) -> Any:
        """Show one."""
        specs = views.volume_type(call, _find(call, type_id))["extra_specs"]
        if key not in specs:
            raise _no_spec(type_id, key)
        return {key: specs[key]}

    @operation("volume_extension:types_extra_specs:create", body=schemas.EXTRA_SPECS)
    def create(self, call: Call, type_id: str) -> Any:
        """Add or change some."""
        found, asked = _find(call, type_id), _texts(call.body["extra_specs"])
        self._set(call, found, {**found.extra_specs, **asked})
        return {"extra_specs": asked}

    @operation("volume_extension:types_extra_specs:create")
    def update(self, call: Call, type_id: str, key: str) -> Any:
        """Set one."""
        body = call.body
        if not isinstance(body, dict) or set(body) != {key}:
            raise Invalid("Request body and URI mismatch")
        if not isinstance(body[key], str) or len(body[key]) > 255:
            raise Invalid(f"Invalid input for field/attribute {key[:255]}.")
        found = _find(call, type_id)
        self._set(call, found, {**found.extra_specs, key: body[key]})
        return {key: body[key]}

    @operation("volume_extension:types_extra_specs:create", status=202)
    def delete(self, call: Call, type_id: str, key: str) -> None:
        """Delete one."""
        found = _find(call, type_id)
        if key not in found.extra_specs:
            raise _no_spec(type_id, key)
        self._set(call, found, {k: v for k, v in found.extra_specs.items() if k != key})

    @staticmethod
    def _set(call: Call, found: VolumeType, specs: Mapping[str, str]) -> None:
        edit = VolumeTypeEdit(extra_specs=dict(specs))
        call.conductor.edit_volume_type(call.ctxt, found.id, edit)


def _no_spec(type_id: str, key: str) -> NotFound:
    return NotFound(f"Volume Type {type_id} has no extra specs with key {key}.")


def _texts(specs: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value or "") for name, value in specs.items()}


def _truth(value: Any) -> bool:
    return str(value).lower() in ("true", "1", "on", "yes", "t", "y")


TYPES, EXTRA_SPECS, ENCRYPTION = Types(), ExtraSpecs(), Encryption()
TYPE_ACTIONS: Mapping[str, Any] = {
    "addProjectAccess": TYPES.add_access,
    "removeProjectAccess": TYPES.remove_access,
}
