"""`/os-server-external-events`: what other services say of servers."""

from __future__ import annotations

import uuid
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import external_events as schemas
from common.log import logger
from db.reads.servers import servers
from web.guard import Reply

LOG = logger(__name__)


class ExternalEvents:
    """Events are logged: networks and volumes are the cloud's own, and power is watched."""

    @operation("os-server-external-events:create", body=schemas.CREATE)
    def create(self, call: Call) -> Any:
        """Take events: 200, or 207 where some failed; each has its code."""
        asked = call.body["events"]
        hosts = call.read(
            servers.hosts_by_uuid, [str(uuid.UUID(event["server_uuid"])) for event in asked]
        )
        events = [_answer(event, hosts) for event in asked]
        fine = all(event["code"] == 200 for event in events)
        return Reply({"events": events}, status=200 if fine else 207)


def _answer(event: dict[str, Any], hosts: dict[str, str | None]) -> dict[str, Any]:
    """Return the event with its code, which Nova gives in this order."""
    server = str(uuid.UUID(event["server_uuid"]))
    if server not in hosts:
        code = 404
    elif event["name"] in schemas.TAGGED and event.get("tag") is None:
        code = 400
    elif hosts[server] is None:
        code = 422
    else:
        code = 200
        LOG.info("Event %s (%s) of server %s.", event["name"], event.get("tag"), server)
    return {**event, "status": "completed" if code == 200 else "failed", "code": code}
