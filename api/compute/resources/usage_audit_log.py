"""`/os-instance_usage_audit_log`: the hosts for whose servers usage notifications were sent."""

from __future__ import annotations

import datetime
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from common import clock
from common.errors import Invalid
from common.resources import audit_periods
from common.resources.audit_periods import AuditPeriods
from db.reads.hosts import services
from db.reads.servers import usage_audits
from db.reads.servers.servers import COMPUTE

#: audit periods may be years
_FIRST_YEAR = 2
_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")


class UsageAuditLog:
    """The log of the last whole audit period; of a month where usage is not audited."""

    @operation("os-instance-usage-audit-log:list")
    def index(self, call: Call) -> Any:
        """Show the log of the last whole audit period."""
        return {"instance_usage_audit_logs": _log(call, clock.utcnow())}

    @operation("os-instance-usage-audit-log:show")
    def show(self, call: Call, before: str) -> Any:
        """Show the log of the last whole audit period before a time."""
        return {"instance_usage_audit_log": _log(call, _moment(before))}


def _moment(text: str) -> datetime.datetime:
    for form in _FORMATS:
        try:
            found = datetime.datetime.strptime(text, form)
        except ValueError:
            continue
        if found.year > _FIRST_YEAR:
            return found.replace(tzinfo=datetime.UTC)
    raise Invalid(f"Invalid timestamp for date {text}")


def _log(call: Call, before: datetime.datetime) -> dict[str, Any]:
    unit = call.read(usage_audits.unit) or audit_periods.DEFAULT
    window = AuditPeriods.parse(unit).last(before)
    audit = call.read(usage_audits.find, window)
    hosts = [one.host for one in call.read(services.list_services, binary=COMPUTE)]
    counts = {} if audit is None else audit.servers_by_host
    # One audit covers the servers of all hosts: all hosts are done when the audit is.
    seen = [] if audit is None else sorted({*hosts, *counts})
    over = audit is not None and audit.finished_at is not None
    done = len(seen) if over else 0
    text = "ALL" if done >= len(hosts) else f"{done} of {len(hosts)}"
    missing = [host for host in hosts if host not in seen]
    begin, end = (str(moment.replace(tzinfo=None)) for moment in window)
    return {
        "period_beginning": begin,
        "period_ending": end,
        "num_hosts": len(hosts),
        "num_hosts_done": done,
        "num_hosts_running": len(seen) - done,
        "num_hosts_not_run": len(missing),
        "hosts_not_run": missing,
        "total_instances": sum(counts.values()),
        "total_errors": 0,
        "overall_status": f"{text} hosts done. 0 errors.",
        "log": {host: _of_host(host, counts.get(host, 0), over=over) for host in seen},
    }


def _of_host(host: str, count: int, *, over: bool) -> dict[str, Any]:
    ran = f"Instance usage audit ran for host {host}, {count} instances."
    return {
        "state": "DONE" if over else "RUNNING",
        "instances": count,
        "errors": 0,
        "message": ran if over else "Instance usage audit started...",
    }
