"""The RPC endpoint of adopted, held and abandoned servers."""

from __future__ import annotations

from common.context import RequestContext
from common.log import logger
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.engine.runner import Runner
from conductor.rpc.servers.manage import Adopted, Adoption
from conductor.servers.manage import mark
from conductor.servers.manage.abandon import Abandoning
from conductor.servers.manage.begin_adopt import Acceptance
from conductor.servers.record import hold
from conductor.sync.vm_states import VmSync

LOG = logger(__name__)


class ManageEndpoint:
    """See ``conductor.rpc.ManageRpc``."""

    def __init__(self, cloud: Cloud, runner: Runner, vm_sync: VmSync) -> None:
        self._cloud = cloud
        self._runner = runner
        self._acceptance = Acceptance(cloud)
        self._abandoning = Abandoning(cloud)
        self._vm_sync = vm_sync

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted:
        adopted, operation = self._acceptance.adopt(ctxt, adoption)
        ctxt.about(ResourceType.SERVER, adopted.server_uuid)
        LOG.info(
            "Adoption of server %s accepted: operation %d.", adopted.server_uuid, operation.id
        )
        self._runner.submit(operation)
        return adopted

    def abandon(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        self._runner.submit(self._abandoning.begin(ctxt, server_uuid, reason, force=force))

    def hold_server(self, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        hold.hold(self._cloud, ctxt, server_uuid, held=held)

    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        self._runner.submit(mark.begin(self._cloud, ctxt, server_uuid))

    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        if hold.retry(self._cloud, ctxt, server_uuid) is not None:
            self._vm_sync.look_at(server_uuid)
