"""`/default-types`: each project's type of new volumes for which no type is named."""

from __future__ import annotations

from typing import Any

from api.volume import schemas
from api.volume.call import Call, operation
from api.volume.resources.types import find_type
from common.errors import Invalid, NotFound
from db.reads.volumes import volumes

_SINCE = "3.62"


class DefaultTypes:
    """Default types of projects; others have that of `[volumes] default_type`."""

    @operation("volume_extension:default_get_all", since=_SINCE)
    def index(self, call: Call) -> Any:
        """List them by project."""
        found = call.read(volumes.default_types)
        return {"default_types": [_view(*one) for one in found.items()]}

    @operation("volume_extension:default_get", since=_SINCE)
    def show(self, call: Call, project_id: str) -> Any:
        """Show that of a project."""
        found = call.read(volumes.default_types, project_id)
        if project_id not in found:
            raise NotFound(f"Default type for project {project_id} not found.")
        return {"default_type": _view(project_id, found[project_id])}

    @operation(
        "volume_extension:default_set_or_update",
        since=_SINCE,
        body=schemas.DEFAULT_TYPE,
        errors={NotFound: Invalid},
    )
    def update(self, call: Call, project_id: str) -> Any:
        """Set that of a project."""
        if len(project_id) > _LONGEST:
            raise Invalid(f"project_id has {len(project_id)} characters, more than {_LONGEST}.")
        type_id = find_type(call, call.body["default_type"]["volume_type"]).id
        call.conductor.set_default_volume_type(call.ctxt, project_id, type_id)
        return {"default_type": _view(project_id, type_id)}

    @operation("volume_extension:default_unset", since=_SINCE, status=204)
    def delete(self, call: Call, project_id: str) -> None:
        """Reset a project's default volume type to the cloud's."""
        call.conductor.set_default_volume_type(call.ctxt, project_id, None)


#: characters of the ID of a project
_LONGEST = 255


def _view(project_id: str, type_id: str) -> dict[str, str]:
    return {"project_id": project_id, "volume_type_id": type_id}
