"""Evacuation of a server."""

from __future__ import annotations

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas
from common.errors import Invalid


class EvacuateActions:
    """The action on a server whose host is gone."""

    @operation("os-evacuate", body=schemas.EVACUATE, status=200, on=the_server)
    def evacuate(self, call: Call) -> dict[str, None] | None:
        """Wait until the HA manager of Proxmox VE has recovered a server whose host is gone.

        The manager chooses the host; a request that names a host is refused. Where the manager
        does not manage the VM, the 400 says why, with the operator's command if there is one.
        Before 2.14 `onSharedStorage` is required, and no password is set; `force` (2.29 to 2.67)
        has no effect.
        """
        asked = call.body["evacuate"]
        host = asked.get("host")
        if _is_true(asked.get("force", False)) and not host:
            raise Invalid("Can't force to a non-provided destination")
        if _is_true(asked.get("onSharedStorage", False)) and "adminPass" in asked:
            raise Invalid("admin password can't be changed on existing disk")
        call.conductor.evacuate_server(call.ctxt, call.server.uuid, host)
        # As Nova answers for a disk on shared storage.
        shows = call.version <= 13 and call.cloud.conf.api.enable_instance_password
        return {"adminPass": None} if shows else None


def _is_true(value: object) -> bool:
    return bool(strutils.bool_from_string(str(value), strict=True))
