"""Members on hosts that are lost for good: the HA manager recovers their VMs, or nothing does.

An administrator has said that nothing runs there any more, and nothing that is seen contradicts
it. What Proxmox VE's high availability recovers is waited for, as an evacuation does: a second
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
        """Return whether its server is recovered elsewhere, or might be; that is waited for by an
        evacuation, which begins here."""
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
        """Return whether all hosts of a cluster are lost: no node is left to recover VMs on, nor
        to be asked about it."""
        with self._cloud.store.read() as connection:
            names = registry.hosts_in(connection, cluster)
            return store.are_lost(connection, names, self._cloud.patience())
