"""Calls about audits."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import Healing
from conductor.rpc_api import AuditRpc


class AuditCalls(Base):
    """See ``conductor.rpc_api.AuditRpc``."""

    def begin_audit(self, ctxt: RequestContext) -> int:
        """Request an audit; return its id, under which the database has its result."""
        return self._rpc.call(ctxt, AuditRpc.begin_audit)

    def heal_finding(self, ctxt: RequestContext, finding_id: int, *, force: bool) -> Healing:
        """Heal a finding; return a sentence, and the operation for it.

        Raises NotFound if it is no open finding; Conflict if it isn't proven ours, has changed
        since the audit, or, without ``force``, is a VM that runs.
        """
        return self._rpc.call(ctxt, AuditRpc.heal_finding, finding_id=finding_id, force=force)
