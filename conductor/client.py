"""The conductor as the API sees it: the only module (with ``messages``) that others import.

Every method is one RPC call and returns when the change is committed. Errors are those of
``common.errors``, rebuilt on this side; a conductor that doesn't answer is Unavailable. The file
is long for one reason: each door has its method here, and there is nothing else in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from common import codec, rpc
from common.context import RequestContext
from common.messages.scheduling import Decision
from common.messages.topics import CONDUCTOR_TOPIC
from conductor.messages import (
    Adopted,
    Adoption,
    CreatedServers,
    CreateServers,
    Evacuation,
    NewFlavor,
    NewKeyPair,
    NewServerGroup,
    Refused,
)
from scheduler.messages import Capacity, Rebalancing

if TYPE_CHECKING:
    import oslo_messaging


class ConductorClient:
    """Calls to whichever conductor takes them."""

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._rpc = rpc.Client(transport, CONDUCTOR_TOPIC)

    def ping(self, ctxt: RequestContext) -> str:
        """Return the name of the conductor that answers. Raises Unavailable when none does."""
        name: str = self._rpc.call(ctxt, "ping")
        return name

    # --- servers

    def create_servers(self, ctxt: RequestContext, request: CreateServers) -> CreatedServers:
        """Check and take quota, write the servers and their operations, begin the builds.

        Raises QuotaExceeded (details: resource, limit, used, requested), NetworkNotFound,
        Invalid (a fixed address that isn't free or that no server can have), Forbidden (one
        outside of the pool), Conflict (more than one network to choose from), NotFound (the
        server group).
        """
        return codec.load(CreatedServers, self._rpc.call(ctxt, "create_servers", request=request))

    def act(self, ctxt: RequestContext, server_uuid: str, action: str, **params: Any) -> int:
        """Begin one of ``common.states.ACTIONS`` other than create; returns the operation's id.

        Raises ServerStateConflict (details: attribute, state, action, server_uuid) and
        ServerNotFound. A second delete of a server that is being deleted changes nothing.
        """
        operation: int = self._rpc.call(
            ctxt, "act", server_uuid=server_uuid, action=action, params=params
        )
        return operation

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted:
        """Look at an existing VM, write its record, and begin to take it under management.

        Raises NotFound (no such cluster or VM), Conflict (with the reason: it is a template,
        locked, somebody's already …), QuotaExceeded, Unavailable (it can't be looked at).
        """
        return codec.load(Adopted, self._rpc.call(ctxt, "adopt", adoption=adoption))

    def forget(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> None:
        """Let a record go whose VM isn't ours, or can't be looked at (only with ``force``).

        Raises ServerNotFound; Conflict where the VM is the server's, or can't be looked at;
        Invalid when it is forced without a reason.
        """
        self._rpc.call(ctxt, "forget", server_uuid=server_uuid, reason=reason, force=force)

    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Have the mark of the server's VM written again, where all but the mark proves it its.

        Raises ServerNotFound, and Conflict where the record names no VM that the journal gave it.
        """
        self._rpc.call(ctxt, "mark_server", server_uuid=server_uuid)

    def hold_server(self, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
        """Let nothing be tried again for the server, or go on with it. Raises ServerNotFound."""
        self._rpc.call(ctxt, "hold_server", server_uuid=server_uuid, held=held)

    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Try at once what waits to be tried again; look after a server in ERROR for which
        nothing waits.

        Raises ServerNotFound; Conflict where nothing waits, and for a server that is held.
        """
        self._rpc.call(ctxt, "retry_server", server_uuid=server_uuid)

    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]
    ) -> None:
        """Change name, description, hostname or auto_disk_config. Raises ServerNotFound."""
        self._rpc.call(ctxt, "update_server", server_uuid=server_uuid, changes=dict(changes))

    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: Mapping[str, str],
        *,
        replace: bool,
        delete: tuple[str, ...] = (),
    ) -> dict[str, str]:
        """Merge (or replace by) the metadata, drop the deleted keys; returns what now is.

        Raises ServerNotFound; QuotaExceeded when there are more than ``metadata_items``.
        """
        now: dict[str, str] = self._rpc.call(
            ctxt,
            "set_server_metadata",
            server_uuid=server_uuid,
            metadata=dict(metadata),
            replace=replace,
            delete=list(delete),
        )
        return now

    def set_server_tags(
        self, ctxt: RequestContext, server_uuid: str, tags: tuple[str, ...]
    ) -> None:
        """Replace the tags. Raises ServerNotFound."""
        self._rpc.call(ctxt, "set_server_tags", server_uuid=server_uuid, tags=list(tags))

    # --- what if

    def preview_servers(
        self, ctxt: RequestContext, request: CreateServers, without: tuple[str, ...] = ()
    ) -> list[Decision]:
        """Where the servers of a create would go now; nothing is taken or written.

        Hosts named in ``without`` are taken for gone. Raises as ``create_servers`` does for
        networks, and Unavailable while no scheduler answers.
        """
        found = self._rpc.call(ctxt, "preview_servers", request=request, without=list(without))
        return [codec.load(Decision, item) for item in found]

    def capacity(
        self, ctxt: RequestContext, request: CreateServers, without: tuple[str, ...] = ()
    ) -> Capacity:
        """How many more servers like those of a create would fit, host by host."""
        return codec.load(
            Capacity, self._rpc.call(ctxt, "capacity", request=request, without=list(without))
        )

    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]:
        """Where each server of a host would go if it died. Raises HostNotFound, Unavailable."""
        found = self._rpc.call(ctxt, "evacuation", host=host)
        return [codec.load(Evacuation, item) for item in found]

    def rebalance(self, ctxt: RequestContext, limit: int) -> Rebalancing:
        """At most ``limit`` moves that would fill the hosts more evenly. Raises Unavailable."""
        return codec.load(Rebalancing, self._rpc.call(ctxt, "rebalance", limit=limit))

    # --- flavors

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str:
        """Returns the flavorid. Raises Conflict when name or id is taken."""
        flavorid: str = self._rpc.call(ctxt, "create_flavor", flavor=flavor)
        return flavorid

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        """Change the description. Raises FlavorNotFound."""
        self._rpc.call(ctxt, "update_flavor", flavorid=flavorid, description=description)

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        """Raises FlavorNotFound. Servers made from it keep their copy."""
        self._rpc.call(ctxt, "delete_flavor", flavorid=flavorid)

    def set_flavor_extra_specs(
        self,
        ctxt: RequestContext,
        flavorid: str,
        specs: Mapping[str, str],
        delete: tuple[str, ...] = (),
    ) -> None:
        """Merge the specs, drop the deleted keys. Raises FlavorNotFound."""
        self._rpc.call(
            ctxt,
            "set_flavor_extra_specs",
            flavorid=flavorid,
            specs=dict(specs),
            delete=list(delete),
        )

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, *, allowed: bool
    ) -> None:
        """Let a project use a private flavor, or no longer.

        Raises FlavorNotFound; Conflict when it may already; NotFound when it may not.
        """
        self._rpc.call(
            ctxt, "set_flavor_access", flavorid=flavorid, project_id=project_id, allowed=allowed
        )

    # --- key pairs, quotas, services

    def create_keypair(self, ctxt: RequestContext, keypair: NewKeyPair) -> None:
        """Raises Conflict when the name is taken, QuotaExceeded over ``key_pairs``."""
        self._rpc.call(ctxt, "create_keypair", keypair=keypair)

    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None:
        """Raises KeyPairNotFound."""
        self._rpc.call(ctxt, "delete_keypair", user_id=user_id, name=name)

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: Mapping[str, int], *, force: bool
    ) -> None:
        """Set limits (-1: none). Raises Invalid when one is below what is used, unless forced."""
        self._rpc.call(ctxt, "set_quota", project_id=project_id, limits=dict(limits), force=force)

    def reset_quota(self, ctxt: RequestContext, project_id: str) -> None:
        """Back to the defaults."""
        self._rpc.call(ctxt, "reset_quota", project_id=project_id)

    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        *,
        disabled: bool | None = None,
        reason: str | None = None,
        forced_down: bool | None = None,
    ) -> None:
        """Enable, disable or force down a service; what is None stays. Raises HostNotFound."""
        self._rpc.call(
            ctxt,
            "update_service",
            service_uuid=service_uuid,
            disabled=disabled,
            reason=reason,
            forced_down=forced_down,
        )

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        """Forget a service. Raises HostNotFound; Conflict while servers are on its host."""
        self._rpc.call(ctxt, "delete_service", service_uuid=service_uuid)

    def refused(self, ctxt: RequestContext, refused: Refused) -> None:
        """Have it kept that a request was refused. Returns at once; it may get lost."""
        self._rpc.cast(ctxt, "refused", refused=refused)

    # --- server groups

    def create_server_group(self, ctxt: RequestContext, group: NewServerGroup) -> str:
        """Returns the UUID. Raises QuotaExceeded over ``server_groups``."""
        uuid: str = self._rpc.call(ctxt, "create_server_group", group=group)
        return uuid

    def delete_server_group(self, ctxt: RequestContext, group_uuid: str) -> None:
        """Its servers stay, in no group. Raises NotFound, also for another project's."""
        self._rpc.call(ctxt, "delete_server_group", group_uuid=group_uuid)

    # --- host aggregates

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int:
        """Returns the id. Raises Conflict when the name is taken."""
        number: int = self._rpc.call(ctxt, "create_aggregate", name=name, zone=zone)
        return number

    def update_aggregate(
        self,
        ctxt: RequestContext,
        number: int,
        *,
        name: str | None = None,
        metadata: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        """Rename; change metadata. Raises as ``set_aggregate_metadata``; Conflict (the name)."""
        self._rpc.call(ctxt, "update_aggregate", number=number, name=name, metadata=dict(metadata))

    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: Mapping[str, str | None]
    ) -> None:
        """Merge; None drops one. Raises NotFound; Invalid for a zone that can't be."""
        self._rpc.call(ctxt, "set_aggregate_metadata", number=number, metadata=dict(metadata))

    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None:
        """Raises NotFound; Invalid while it has hosts."""
        self._rpc.call(ctxt, "delete_aggregate", number=number)

    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Raises NotFound, HostNotFound; Conflict for a host that can't be in it, or is."""
        self._rpc.call(ctxt, "add_aggregate_host", number=number, host=host)

    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Raises NotFound, HostNotFound; Conflict where servers would change their zone."""
        self._rpc.call(ctxt, "remove_aggregate_host", number=number, host=host)

    def cache_images(self, ctxt: RequestContext, number: int, image_ids: Sequence[str]) -> None:
        """Begin to make images ready on all hosts of an aggregate that are up.

        Raises NotFound; Invalid, with nothing begun, for an image that a host can't have ready.
        """
        self._rpc.call(ctxt, "cache_images", number=number, image_ids=list(image_ids))

    # --- the audit

    def begin_audit(self, ctxt: RequestContext) -> int:
        """Have an audit run now; returns its id, under which the database tells how it went."""
        audit_id: int = self._rpc.call(ctxt, "begin_audit")
        return audit_id

    def heal_finding(
        self, ctxt: RequestContext, finding_id: int, *, force: bool
    ) -> dict[str, Any]:
        """Heal what an audit found: {"answer": a sentence, "operation_id": what goes on with it}.

        Raises NotFound when it is no open finding; Conflict when it isn't proven ours, isn't any
        more what the audit saw, or is a VM that runs, without ``force``.
        """
        answer: dict[str, Any] = self._rpc.call(
            ctxt, "heal_finding", finding_id=finding_id, force=force
        )
        return answer
