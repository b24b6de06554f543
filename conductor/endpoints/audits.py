"""The RPC endpoint of audits."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict
from common.rpc import deadlines
from conductor.audit.auditor import Auditor
from conductor.audit.heal import Healer
from conductor.audit.proof import RefusedError
from conductor.cloud import Cloud
from conductor.rpc.audits import Healing
from conductor.store.audits import findings
from conductor.store.audits.findings import Task


class AuditEndpoint:
    """See ``conductor.rpc.AuditRpc``."""

    def __init__(self, cloud: Cloud, auditor: Auditor, healer: Healer) -> None:
        self._cloud, self._auditor, self._healer = cloud, auditor, healer

    def begin_audit(self, ctxt: RequestContext) -> int:
        return self._auditor.ask(str(ctxt.request_id))

    def begin_restore(self, ctxt: RequestContext, *, apply: bool) -> int:
        return self._auditor.ask(str(ctxt.request_id), Task.APPLY if apply else Task.PLAN)

    def heal_finding(self, ctxt: RequestContext, finding_id: int, *, force: bool) -> Healing:
        with self._cloud.store.read() as connection:
            found = findings.get(connection, finding_id)
        if found.heal is None:
            raise Conflict("Nothing proves that it is this cloud's: it is never touched.")
        if found.evidence.get("status") not in (None, "stopped") and not force:
            raise Conflict("The VM is not stopped; only force removes it.")
        deadlines.check()
        deadlines.carried_out()
        try:
            answer = self._healer.heal(found, asked=True)
        except RefusedError as error:
            raise Conflict(error.message) from error
        self._cloud.store.run(
            lambda c: findings.tried(c, finding_id, answer.text, answer.operation_id)
        )
        return Healing(answer.text, answer.operation_id)
