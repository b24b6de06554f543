"""Accepts rescues, in one transaction each."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict
from conductor.cloud import Cloud
from conductor.engine import access, start
from conductor.engine.access import scope
from conductor.images import image_source
from conductor.plans import RescuePlan, SwapParams
from conductor.servers.disks.begin_rebuild import hardware_of, here, require_in_use, require_no_tpm
from conductor.store.records import Operation
from conductor.store.servers import migrations, servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments


class RescueAcceptance:
    """Begins rescues."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def rescue(
        self, ctxt: RequestContext, server_uuid: str, image_id: str, admin_password: str
    ) -> Operation:
        """See ``ConductorRpc.rescue_server``."""

        def work(connection: Transaction) -> Operation:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            require_no_tpm(server, hardware_of(server, server.image_properties), "rescue")
            access.require_free(ctxt, server, "rescue")
            require_in_use(attachments.of_server(connection, server.uuid), Conflict)
            image_source.require_copied_on(connection, image_id, server)
            # A migration that was still open when the server became ERROR.
            migrations.end_open(connection, server.uuid)
            plan = RescuePlan(here(connection, server), was=server.vm_state, image_id=image_id)
            params = SwapParams(admin_password=admin_password)
            which = (self._cloud, ctxt, server, "rescue", plan)
            return start.take(connection, *which, params=params)[0]

        return self._cloud.store.run(work)
