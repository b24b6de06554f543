"""`/os-migrations`, and the live migrations of a server that are in progress."""

from __future__ import annotations

from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import migrations as schemas
from api.compute.views import migrations as views
from common.errors import Invalid, NotFound
from common.resources.migrations import IN_PROGRESS, MigrationStatus, MigrationType
from db.reads.keyset import MarkerNotFound
from db.reads.servers import migrations
from db.reads.servers.migrations import Filters, Migration

_ALL_PROJECTS = "os-migrations:index:all_projects"
_HOSTS = "os-migrations:index:host"
_HOSTS_OF_SERVER = "servers:migrations:index:host"
#: the microversions that brought pages, and filters by time
_PAGES_SINCE, _BEFORE_SINCE = 59, 66
#: the microversion from which a migration that has not begun to copy can be aborted
_EARLY_SINCE, _EARLY = 65, frozenset({MigrationStatus.QUEUED, MigrationStatus.PREPARING})


class Migrations:
    """Moves and resizes of all servers."""

    @operation("os-migrations:index", query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List migrations; in pages since 2.59, the newest first."""
        project_id = call.query.last("project_id")
        if not project_id or project_id != call.ctxt.project_id:
            call.check(_ALL_PROJECTS)
        filters = _filters(call)
        found = [] if _only_hidden(call) else _found(call, filters)
        sight = views.Sight(call.version, call.allows(_HOSTS))
        answer: dict[str, Any] = {
            "migrations": [views.listed(one, sight, call.links) for one in found]
        }
        limit, _ = call.query.page(call.max_limit)
        if call.version >= _PAGES_SINCE and found and len(found) == limit:
            last = found[-1].uuid
            answer["migrations_links"] = call.links.after(views.COLLECTION, call.query, last)
        return answer


class ServerMigrations:
    """Live migrations of a server that are in progress."""

    @operation("servers:migrations:index", on=the_server, since="2.23")
    def index(self, call: Call) -> Any:
        """List a server's live migrations in progress."""
        target = {"project_id": call.server.project_id}
        sight = views.Sight(call.version, call.allows(_HOSTS_OF_SERVER, target))
        found = call.read(migrations.in_progress, call.server.uuid)
        return {"migrations": [views.of_server(*one, sight) for one in found]}

    @operation("servers:migrations:show", on=the_server, since="2.23")
    def show(self, call: Call, migration_id: str) -> Any:
        """Show a live migration in progress, with what is copied."""
        uuid = call.server.uuid
        number = int(migration_id) if _is_number(migration_id) else None
        found = None if number is None else call.read(migrations.find, uuid, number)
        if found is None:
            raise NotFound(
                f"In-progress live migration {migration_id} is not found for server {uuid}."
            )
        migration, progress = found
        if migration.type != MigrationType.LIVE:
            raise NotFound(f"Migration {migration_id} for server {uuid} is not live-migration.")
        if migration.status not in IN_PROGRESS:
            raise NotFound(f"Live migration {migration_id} for server {uuid} is not in progress.")
        return {"migration": views.of_server(migration, progress, views.Sight(call.version, True))}

    @operation("servers:migrations:delete", status=202, on=the_server, since="2.24")
    def abort(self, call: Call, migration_id: str) -> None:
        """Abort a live migration in progress, if the privileges of the agent's token allow it.

        From 2.65 a migration that is still being prepared can be aborted as well.
        """
        uuid = call.server.uuid
        if call.version < _EARLY_SINCE and _is_number(migration_id):
            found = call.read(migrations.find, uuid, int(migration_id))
            if found is not None and found[0].status in _EARLY:
                raise Invalid(
                    f"Migration {migration_id} state of instance {uuid} is {found[0].status}. "
                    "Cannot abort live migration while the migration is in this state."
                )
        self._steer(call, migration_id, abort=True)

    @operation(
        "servers:migrations:force_complete",
        body=schemas.FORCE_COMPLETE,
        status=202,
        on=the_server,
        since="2.22",
    )
    def force_complete(self, call: Call, migration_id: str) -> None:
        """Pause the guest so that its live migration ends, where the agent's token may."""
        self._steer(call, migration_id, abort=False)

    @staticmethod
    def _steer(call: Call, migration_id: str, *, abort: bool) -> None:
        if not _is_number(migration_id):
            raise NotFound(f"Migration {migration_id} not found for instance {call.server.uuid}.")
        number = int(migration_id)
        call.conductor.steer_migration(call.ctxt, call.server.uuid, number, abort=abort)


def _found(call: Call, filters: Filters) -> list[Migration]:
    if call.version < _PAGES_SINCE:
        every: list[Migration] = call.read(migrations.list_migrations, filters)
        return every
    limit, marker = call.query.page(call.max_limit)
    try:
        page: list[Migration] = call.read(migrations.page, filters, limit, marker)
    except MarkerNotFound as error:
        raise Invalid(f"Marker {marker} could not be found.") from error
    return page


def _filters(call: Call) -> Filters:
    """Return the requested filters. Raises Invalid."""
    query, since, before = call.query, None, None
    if call.version >= _PAGES_SINCE:
        since = query.moment("changes-since")
    if call.version >= _BEFORE_SINCE:
        before = query.moment("changes-before")
    if since and before and before < since:
        raise Invalid("The value of changes-since must be less than or equal to changes-before.")
    return Filters(
        project_id=query.last("project_id"),
        user_id=query.last("user_id"),
        host=query.last("host"),
        source_host=query.last("source_compute"),
        server_uuid=query.last("instance_uuid"),
        type=query.last("migration_type"),
        statuses=tuple(value for value in [query.last("status")] if value is not None),
        changed_since=since,
        changed_before=before,
    )


def _only_hidden(call: Call) -> bool:
    """Return whether only hidden ones are wanted, which are never shown."""
    return bool(strutils.bool_from_string(call.query.last("hidden") or "false"))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
