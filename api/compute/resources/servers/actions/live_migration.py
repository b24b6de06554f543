"""Live migration of a server."""

from __future__ import annotations

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas
from common.errors import HostNotFound, Invalid

_HOST = "os-migrate-server:migrate_live:host"
AUTO = "auto"
#: since when the request is answered before the storage is looked at
_LATER_CHECKED = 34


class LiveMigrationActions:
    """The action that moves a server while it runs."""

    @operation(
        "os-migrate-server:migrate_live",
        body=schemas.MIGRATE_LIVE,
        status=202,
        on=the_server,
        errors={HostNotFound: Invalid},
    )
    def migrate_live(self, call: Call) -> None:
        """Move a running server to `host`; without `host` the scheduler chooses.

        `block_migration`: whether its disks must be copied; since 2.25 `auto`: only if necessary.
        `force` and `disk_over_commit` have no effect: a host without room is never chosen.
        """
        asked = call.body["os-migrateLive"]
        host = asked["host"]
        if host is not None:
            call.check(_HOST)
        if _is_true(asked.get("force", False)) and not host:
            raise Invalid("Can't force to a non-provided destination")
        block = asked["block_migration"]
        copy_disks = None if block == AUTO else _is_true(block)
        call.conductor.live_migrate_server(
            call.ctxt,
            call.server.uuid,
            host,
            copy_disks,
            checks_storage=call.version < _LATER_CHECKED,
        )


def _is_true(value: object) -> bool:
    return bool(strutils.bool_from_string(str(value), strict=True))
