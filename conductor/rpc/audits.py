"""Calls about audits and what they found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class Healing:
    """How an attempt to heal a finding went."""

    answer: str
    operation_id: int | None
    """The operation that does it."""


class AuditRpc(Protocol):
    """Audits and what they found."""

    def begin_audit(self, ctxt: RequestContext) -> int:
        """Request an audit; return its id, under which the database has its result."""

    def begin_restore(self, ctxt: RequestContext, *, apply: bool) -> int:
        """Request to compare a restored record with the clusters, and to decide with ``apply``.

        Return the ID of an audit, whose report has the result.
        """

    def heal_finding(self, ctxt: RequestContext, finding_id: int, *, force: bool) -> Healing:
        """Heal a finding; return a sentence, and the operation for it.

        Raises NotFound if it is no open finding; Conflict if it isn't proven ours, has changed
        since the audit, or, without ``force``, is a VM that runs.
        """
