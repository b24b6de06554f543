"""Calls about servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import (
    CreatedServers,
    CreateServers,
    FlavorSnapshot,
    NewServerImage,
    RebuildServer,
)
from conductor.rpc_api import ServerRpc


class ServerCalls(Base):
    """See ``conductor.rpc_api.ServerRpc``."""

    def create_servers(self, ctxt: RequestContext, request: CreateServers) -> CreatedServers:
        """Check and take quota, write the servers and their operations, begin the builds.

        Raises QuotaExceeded (details: resource, limit, used, requested), NetworkNotFound,
        Invalid (a fixed address that isn't free or that no server can have), Forbidden (one
        outside of the pool), Conflict (more than one network to choose from), NotFound (the
        server group).
        """
        return self._rpc.call(ctxt, ServerRpc.create_servers, request=request)

    def act(self, ctxt: RequestContext, server_uuid: str, action: str, **params: Any) -> int:
        """Begin one of ``common.states.ACTIONS`` other than create; returns the operation's id.

        Raises ServerStateConflict (details: attribute, state, action, server_uuid), ServerLocked
        and ServerNotFound, and QuotaExceeded for a restore. A second delete of a server that is
        being deleted changes nothing. With ``deferred`` a delete may be taken back, where the
        cloud keeps deleted servers for some time.
        """
        return self._rpc.call(
            ctxt, ServerRpc.act, server_uuid=server_uuid, action=action, params=params
        )

    def resize_server(self, ctxt: RequestContext, server_uuid: str, flavor: FlavorSnapshot) -> int:
        """Begin a resize, and take what it grows by from the quota; returns the operation's id.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the host's agent is
        down), Invalid (the server can't have the flavor), QuotaExceeded.
        """
        return self._rpc.call(
            ctxt, ServerRpc.resize_server, server_uuid=server_uuid, flavor=flavor
        )

    def migrate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        """Begin a cold migration, to this host or to any other; returns the operation's id.

        Raises ServerNotFound, ServerStateConflict, HostNotFound, Conflict (the agent of its host
        is down), Invalid (to its own host or another cluster, or it can't be moved).
        """
        return self._rpc.call(ctxt, ServerRpc.migrate_server, server_uuid=server_uuid, host=host)

    def end_resize(self, ctxt: RequestContext, server_uuid: str, action: str) -> int:
        """Begin ``confirmResize`` or ``revertResize``; returns the operation's id.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the host's agent is
        down), Invalid (it was not resized).
        """
        return self._rpc.call(ctxt, ServerRpc.end_resize, server_uuid=server_uuid, action=action)

    def rebuild_server(
        self, ctxt: RequestContext, server_uuid: str, request: RebuildServer
    ) -> int:
        """Give a server a new disk, on its own host; returns the operation's id.

        Its record has what was asked at once. Raises ServerNotFound, ServerLocked,
        ServerStateConflict, Conflict (it has a TPM, or no host), QuotaExceeded (metadata,
        files), and Invalid for an image that needs other hardware than the server can get.
        """
        return self._rpc.call(
            ctxt, ServerRpc.rebuild_server, server_uuid=server_uuid, request=request
        )

    def create_server_image(
        self, ctxt: RequestContext, server_uuid: str, image: NewServerImage
    ) -> str | None:
        """Begin ``createImage`` or ``createBackup``; return the image's id, None: none is kept.

        Raises ServerNotFound, ServerStateConflict, QuotaExceeded.
        """
        return self._rpc.call(
            ctxt, ServerRpc.create_server_image, server_uuid=server_uuid, image=image
        )

    def steer_migration(
        self, ctxt: RequestContext, server_uuid: str, number: int, *, abort: bool
    ) -> None:
        """Abort a live migration, or have it end at once by pausing the guest.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, NotFound (the migration),
        Invalid (it is too early or too late, or the agent's token may not).
        """
        self._rpc.call(
            ctxt,
            ServerRpc.steer_migration,
            server_uuid=server_uuid,
            number=number,
            abort=abort,
        )

    def live_migrate_server(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        host: str | None,
        copy_disks: bool | None,
        *,
        checks_storage: bool = False,
    ) -> int:
        """Begin a live migration to this host, or to any other; returns the operation's id.

        ``copy_disks``: whether disks must be copied; None: as needed. ``checks_storage``: refuse
        at once what its storage doesn't allow, as the operation would later. Raises
        ServerNotFound, ServerLocked, ServerStateConflict, HostNotFound, Invalid (to its own host,
        to another cluster, or it can't be moved).
        """
        return self._rpc.call(
            ctxt,
            ServerRpc.live_migrate_server,
            server_uuid=server_uuid,
            host=host,
            copy_disks=copy_disks,
            checks_storage=checks_storage,
        )

    def evacuate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        """Begin to wait until the HA manager has recovered a server of a lost host; returns the
        operation's id.

        Raises ServerNotFound, ServerStateConflict, HostNotFound, Unavailable (no scheduler), and
        Invalid: it is its own host, or its host is not lost, or a ``host`` is asked of the HA
        manager, or it doesn't recover the server; then with what the operator can do.
        """
        return self._rpc.call(ctxt, ServerRpc.evacuate_server, server_uuid=server_uuid, host=host)

    def rescue_server(
        self, ctxt: RequestContext, server_uuid: str, image_id: str, admin_password: str
    ) -> int:
        """Run a server from a disk made of an image; returns the operation's id.

        ``act`` with ``unrescue`` ends it. Raises ServerNotFound, ServerLocked,
        ServerStateConflict, Conflict (it has a TPM, or no host).
        """
        return self._rpc.call(
            ctxt,
            ServerRpc.rescue_server,
            server_uuid=server_uuid,
            image_id=image_id,
            admin_password=admin_password,
        )

    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]
    ) -> None:
        """Change the columns of ``conductor.endpoints.servers.CHANGEABLE``.

        Raises ServerNotFound, and Conflict for a zone that the server can't be pinned to.
        """
        self._rpc.call(
            ctxt, ServerRpc.update_server, server_uuid=server_uuid, changes=dict(changes)
        )

    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: Mapping[str, str],
        *,
        replace: bool,
        delete: tuple[str, ...] = (),
    ) -> dict[str, str]:
        """Merge (or replace by) the metadata, drop the deleted keys; return the result.

        Raises ServerNotFound, ServerLocked, and QuotaExceeded when there are more than
        ``metadata_items``.
        """
        return self._rpc.call(
            ctxt,
            ServerRpc.set_server_metadata,
            server_uuid=server_uuid,
            metadata=dict(metadata),
            replace=replace,
            delete=list(delete),
        )

    def set_server_tags(
        self, ctxt: RequestContext, server_uuid: str, tags: tuple[str, ...]
    ) -> None:
        """Replace the tags. Raises ServerNotFound."""
        self._rpc.call(ctxt, ServerRpc.set_server_tags, server_uuid=server_uuid, tags=list(tags))

    def lock_server(self, ctxt: RequestContext, server_uuid: str, reason: str | None) -> None:
        """Lock a server: only administrators act on it then. Raises ServerNotFound.

        Nothing changes where its owner locks it once more.
        """
        self._rpc.call(ctxt, ServerRpc.lock_server, server_uuid=server_uuid, reason=reason)

    def reset_server_state(self, ctxt: RequestContext, server_uuid: str, state: str) -> None:
        """Say what a server is, one of ``VmState``; for administrators. No VM is touched.

        Raises ServerNotFound, and ServerStateConflict while something is under way that neither
        gives way nor goes on by itself.
        """
        self._rpc.call(ctxt, ServerRpc.reset_server_state, server_uuid=server_uuid, state=state)

    def unlock_server(self, ctxt: RequestContext, server_uuid: str, *, override: bool) -> None:
        """Unlock a server; ``override``: also one that others locked.

        Raises ServerNotFound, Forbidden.
        """
        self._rpc.call(ctxt, ServerRpc.unlock_server, server_uuid=server_uuid, override=override)
