"""`/audits` and `/audit/findings`: whether clusters and record agree.

These resources are micronova's own, for administrators.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import audits as schemas
from common import clock
from common.errors import NotFound
from db.reads import audits

_MAX_ID = 2**63 - 1
Row = audits.Audit | audits.Finding


class Audits:
    """Audit runs."""

    @operation(policies.AUDIT_BEGIN, status=202)
    def create(self, call: Call) -> Any:
        """Start an audit; its progress is shown under its ID."""
        audit_id = call.conductor.begin_audit(call.ctxt)
        return {"audit": {"id": audit_id}}

    @operation(policies.AUDIT_READ, query=schemas.LIST_AUDITS)
    def index(self, call: Call) -> Any:
        """List recent audits, newest first."""
        limit, _ = call.query.page(call.max_limit)
        found = call.read(audits.list_audits, limit)
        return {"audits": [_view(audit) for audit in found]}

    @operation(policies.AUDIT_READ)
    def show(self, call: Call, audit_id: str) -> Any:
        """Show an audit, with its report once it is done."""
        found = call.read(audits.find_audit, _number(audit_id, "audit"))
        if found is None:
            raise NotFound(f"Audit {audit_id} could not be found.")
        return {"audit": _view(found)}


class Restores:
    """Decisions about a database that was restored."""

    @operation(policies.RECORD_RESTORE, status=202, body=schemas.RESTORE)
    def create(self, call: Call) -> Any:
        """Compare a restored database with the clusters; with `apply` adopt what is newer, and
        release what is held. The report is that of the audit with this ID."""
        apply = bool(call.body["restore"]["apply"])
        return {"audit": {"id": call.conductor.begin_restore(call.ctxt, apply=apply)}}


class Findings:
    """The differences that audits found."""

    @operation(policies.AUDIT_READ, query=schemas.LIST_FINDINGS)
    def index(self, call: Call) -> Any:
        """List open findings, oldest first; with `healed=true` the healed ones."""
        limit, _ = call.query.page(call.max_limit)
        found = call.read(
            audits.list_findings,
            limit,
            healed=call.query.boolean("healed"),
            kind=call.query.last("kind"),
        )
        return {"findings": [_view(finding) for finding in found]}

    @operation(policies.AUDIT_READ)
    def show(self, call: Call, finding_id: str) -> Any:
        """Show a finding."""
        found = call.read(audits.find_finding, _number(finding_id, "finding"))
        if found is None:
            raise NotFound(f"Finding {finding_id} could not be found.")
        return {"finding": _view(found)}

    @operation(policies.AUDIT_HEAL, status=202, body=schemas.HEAL)
    def heal(self, call: Call, finding_id: str) -> Any:
        """Heal a finding that is proven ours; a running VM only with `force`."""
        number = _number(finding_id, "finding")
        force = bool((call.body["heal"] or {}).get("force"))
        healing = call.conductor.heal_finding(call.ctxt, number, force=force)
        return {"heal": {"answer": healing.answer, "operation_id": healing.operation_id}}


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise NotFound(f"There is no {what} {text}.")
    return min(int(text), _MAX_ID)


def _view(row: Row) -> dict[str, Any]:
    values = dataclasses.asdict(row)
    return {
        name: clock.iso(value) if name.endswith("_at") else value for name, value in values.items()
    }
