"""`/os-instance_usage_audit_log`: which hosts audited usage, which none does here."""

from __future__ import annotations

import datetime
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import named
from common import clock
from common.errors import Invalid
from db.reads import services
from db.reads.servers import COMPUTE

_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")


class UsageAuditLog:
    """The log of the last whole month: every host has yet to run."""

    @operation(named("os-instance-usage-audit-log:list"))
    def index(self, call: Call) -> Any:
        """Show the log of the last whole month."""
        return {"instance_usage_audit_logs": _log(call, clock.utcnow())}

    @operation(named("os-instance-usage-audit-log:show"))
    def show(self, call: Call, before: str) -> Any:
        """Show the log of the last whole month before a time."""
        return {"instance_usage_audit_log": _log(call, _moment(before))}


def _moment(text: str) -> datetime.datetime:
    for form in _FORMATS:
        try:
            found = datetime.datetime.strptime(text, form)
        except ValueError:
            continue
        if (found.year, found.month) > (1, 1):
            return found
    raise Invalid(f"Invalid timestamp for date {text}")


def _log(call: Call, before: datetime.datetime) -> dict[str, Any]:
    end = datetime.datetime(before.year, before.month, 1)
    begin = (end - datetime.timedelta(days=1)).replace(day=1)
    hosts = [one.host for one in call.read(services.list_services, binary=COMPUTE)]
    done = "ALL" if not hosts else f"0 of {len(hosts)}"
    return {
        "period_beginning": str(begin),
        "period_ending": str(end),
        "num_hosts": len(hosts),
        "num_hosts_done": 0,
        "num_hosts_running": 0,
        "num_hosts_not_run": len(hosts),
        "hosts_not_run": hosts,
        "total_instances": 0,
        "total_errors": 0,
        "overall_status": f"{done} hosts done. 0 errors.",
        "log": {},
    }
