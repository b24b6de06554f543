"""`POST /servers/{id}/action`: the body names the action."""

from __future__ import annotations

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.consoles import ConsoleActions
from api.compute.resources.found import the_server
from api.compute.resources.servers.actions.admin import AdminActions
from api.compute.resources.servers.actions.evacuate import EvacuateActions
from api.compute.resources.servers.actions.images import ImageActions
from api.compute.resources.servers.actions.live_migration import LiveMigrationActions
from api.compute.resources.servers.actions.rebuild import RebuildActions
from api.compute.resources.servers.actions.rescue import RescueActions
from api.compute.resources.servers.actions.resize import ResizeActions
from api.compute.resources.servers.actions.shelve import ShelveActions
from api.compute.resources.servers.interfaces import FixedIpActions
from api.compute.resources.servers.manage import ManageActions
from api.compute.resources.servers.security_groups import SecurityGroupActions
from api.compute.schemas import servers as schemas


class ServerActions(
    ManageActions,
    AdminActions,
    ResizeActions,
    LiveMigrationActions,
    EvacuateActions,
    RebuildActions,
    ImageActions,
    RescueActions,
    ShelveActions,
    ConsoleActions,
    FixedIpActions,
    SecurityGroupActions,
):
    """Actions on a server: accepted (202), or refused (409) in the wrong state."""

    @operation("servers:start", body=schemas.START, status=202, on=the_server)
    def start(self, call: Call) -> None:
        """Start a server."""
        call.conductor.act(call.ctxt, call.server.uuid, "start")

    @operation("servers:stop", body=schemas.STOP, status=202, on=the_server)
    def stop(self, call: Call) -> None:
        """Stop a server."""
        call.conductor.act(call.ctxt, call.server.uuid, "stop")

    @operation("servers:reboot", body=schemas.REBOOT, status=202, on=the_server)
    def reboot(self, call: Call) -> None:
        """Reboot a server: through the guest (SOFT), or by power (HARD)."""
        hard = call.body["reboot"]["type"].upper() == "HARD"
        call.conductor.act(call.ctxt, call.server.uuid, "reboot-hard" if hard else "reboot")

    @operation("os-pause-server:pause", body=schemas.PAUSE, status=202, on=the_server)
    def pause(self, call: Call) -> None:
        """Pause a server: its memory and its claim are kept."""
        call.conductor.act(call.ctxt, call.server.uuid, "pause")

    @operation("os-pause-server:unpause", body=schemas.UNPAUSE, status=202, on=the_server)
    def unpause(self, call: Call) -> None:
        """Let a paused server run."""
        call.conductor.act(call.ctxt, call.server.uuid, "unpause")

    @operation("os-suspend-server:suspend", body=schemas.SUSPEND, status=202, on=the_server)
    def suspend(self, call: Call) -> None:
        """Suspend a server: its memory is saved to disk; 409 where that can't be done."""
        call.conductor.act(call.ctxt, call.server.uuid, "suspend")

    @operation("os-suspend-server:resume", body=schemas.RESUME, status=202, on=the_server)
    def resume(self, call: Call) -> None:
        """Start a suspended server from its saved memory."""
        call.conductor.act(call.ctxt, call.server.uuid, "resume")

    @operation("os-deferred-delete:force", body=schemas.FORCE_DELETE, status=202, on=the_server)
    def force_delete(self, call: Call) -> None:
        """Delete a server at once, also a soft-deleted server."""
        call.conductor.act(call.ctxt, call.server.uuid, "delete")

    @operation("os-deferred-delete:restore", body=schemas.RESTORE, status=202, on=the_server)
    def restore(self, call: Call) -> None:
        """Restore a soft-deleted server: it is started."""
        call.conductor.act(call.ctxt, call.server.uuid, "restore")

    @operation("os-admin-password", body=schemas.CHANGE_PASSWORD, status=202, on=the_server)
    def change_password(self, call: Call) -> None:
        """Set the administrator's password in the guest; it is set when this is answered."""
        password = call.body["changePassword"]["adminPass"]
        call.conductor.change_password(call.ctxt, call.server.uuid, password)

    @operation("os-lock-server:lock", body=schemas.LOCK, status=202, on=the_server)
    def lock(self, call: Call) -> None:
        """Lock a server: only administrators may act on it; since 2.73 with a reason."""
        asked = call.body["lock"] if call.version >= 73 else None
        reason = asked.get("locked_reason") if asked else None
        call.conductor.lock_server(call.ctxt, call.server.uuid, reason)

    @operation("os-lock-server:unlock", body=schemas.UNLOCK, status=202, on=the_server)
    def unlock(self, call: Call) -> None:
        """Unlock a server; if another user locked it, only where the policy allows that."""
        target = {"project_id": call.server.project_id}
        override = call.allows("os-lock-server:unlock:unlock_override", target)
        call.conductor.unlock_server(call.ctxt, call.server.uuid, override=override)
