"""Calls about audits."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.rpc_api import AuditRpc


class AuditCalls(Base):
    """See ``conductor.rpc_api.AuditRpc``."""

    def begin_audit(self, ctxt: RequestContext) -> int:
        """Begin an audit; returns its id, under which the database has its result."""
        return self._rpc.call(ctxt, AuditRpc.begin_audit)

    def heal_finding(
        self, ctxt: RequestContext, finding_id: int, *, force: bool
    ) -> dict[str, str | int | None]:
        """Heal what an audit found: {"answer": a sentence, "operation_id": of what heals it}.

        Raises NotFound when it is no open finding; Conflict when it isn't proven ours, isn't any
        more what the audit saw, or is a VM that runs, without ``force``.
        """
        return self._rpc.call(ctxt, AuditRpc.heal_finding, finding_id=finding_id, force=force)
