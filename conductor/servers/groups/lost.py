"""Members on hosts that are lost for good: the HA manager recovers their VMs, or nothing does.

An administrator has marked these hosts as down for good, and no report contradicts that. A VM that
Proxmox VE's high availability recovers is not replaced: an evacuation waits for it, as another
server in the member's place would be one too many.
"""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid, Unavailable
from common.log import logger
from conductor.cloud import Cloud
from conductor.servers.move import begin_evacuation
from conductor.store.groups import groups as store
from conductor.store.groups.groups import Member
from conductor.store.hosts import registry
from conductor.store.servers import servers
from conductor.sync import whereabouts

LOG = logger(__name__)


class LostMembers:
    """Asks what becomes of servers on lost hosts."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def recover(self, ctxt: RequestContext, member: Member) -> bool:
        """Begin an evacuation if high availability recovers the member's server on another node.

        Return whether it does, or might: then the member is not replaced.
        """
        uuid = str(member.server_uuid)
        with self._cloud.store.read() as connection:
            server = servers.get(connection, uuid)
        if server.vmid is None:
            return False
        try:
            service = whereabouts.ha_service(self._cloud, ctxt, server)
        except Unavailable as error:
            if self._is_lost(str(server.cluster)):
                return False
            LOG.warning("Whether server %s is recovered is not known: %s", uuid, error.message)
            return True
        if service is None or not service.is_recovered:
            return False
        try:
            operation = begin_evacuation.accept(self._cloud, ctxt, uuid, None)
        except Invalid as error:
            LOG.info("Server %s is not recovered elsewhere: %s", uuid, error.message)
            return False
        self._cloud.start(operation)
        return True

    def _is_lost(self, cluster: str) -> bool:
        """Return whether all hosts of a cluster are lost: then no node can recover VMs, and none
        can answer for them."""
        with self._cloud.store.read() as connection:
            names = registry.hosts_in(connection, cluster)
            return store.are_lost(connection, names, self._cloud.patience())
