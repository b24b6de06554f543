"""Which providers a compute agent's user may write: those of the hosts that its roles name.

Such a user has the role `agent`, and for each of its hosts a role `agent@HOST`, or `agent@PREFIX*`
for all hosts whose names begin so. A provider is a host's if the root of its tree has the host's
name. Users with the role `admin` or `service` are no agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlalchemy.engine import Connection

from common.context import RequestContext
from common.errors import Forbidden, NotFound
from placement.db import providers
from placement.db.engine import Database
from placement.policies import AGENT, AGENT_MAY, AGENT_WRITES

_PREFIX = f"{AGENT}@"
_OTHERS = frozenset({"admin", "service"})


def hosts_of(ctxt: RequestContext) -> tuple[str, ...] | None:
    """Return the names of an agent's hosts, or beginnings of names with a `*`; None: no agent."""
    if AGENT not in ctxt.roles or _OTHERS.intersection(ctxt.roles):
        return None
    return tuple(role[len(_PREFIX) :] for role in ctxt.roles if role.startswith(_PREFIX))


def is_one_of(name: str, hosts: Sequence[str]) -> bool:
    """Return whether a host is named.

    >>> is_one_of("pve1", ["pve1"]), is_one_of("pve12", ["pve1"]), is_one_of("pve12", ["pve*"])
    (True, False, True)
    """
    return any(
        name.startswith(host[:-1]) if host.endswith("*") else name == host for host in hosts
    )


def check(ctxt: RequestContext, rule: str, connection: Connection, uuid: str | None) -> None:
    """Raise Forbidden where an agent does what is no agent's, or writes another host's provider.

    Raises NotFound where the provider to be written doesn't exist.
    """
    hosts = hosts_of(ctxt)
    if hosts is None:
        return
    if rule not in AGENT_MAY:
        raise _refused(ctxt, rule)
    if rule in AGENT_WRITES and uuid is not None and not _owns(connection, uuid, hosts):
        raise _refused(ctxt, rule)


def check_names(
    ctxt: RequestContext,
    database: Database,
    named: Callable[[Connection], Iterable[tuple[str, str | None]]],
) -> None:
    """Raise Forbidden where an agent gives a provider a place that is no host of its own.

    ``named`` returns pairs of a provider's name and its parent's UUID, None for a tree's root.
    """
    hosts = hosts_of(ctxt)
    if hosts is None:
        return

    def check_all(connection: Connection) -> None:
        for name, parent in named(connection):
            if not _may_be_at(connection, name, parent, hosts):
                raise Forbidden(f"No role of this user names the host of provider {name}.")

    database.read(check_all)


def _may_be_at(
    connection: Connection, name: str, parent: str | None, hosts: Sequence[str]
) -> bool:
    if parent is None:
        return is_one_of(name, hosts)
    try:
        return _owns(connection, parent, hosts)
    except NotFound:
        return False


def _owns(connection: Connection, uuid: str, hosts: Sequence[str]) -> bool:
    found = providers.find(connection, uuid)
    if found.root_uuid != found.uuid:
        found = providers.find(connection, found.root_uuid)
    return is_one_of(found.name, hosts)


def _refused(ctxt: RequestContext, rule: str) -> Forbidden:
    return Forbidden(f"Policy does not allow {rule} to be performed by an agent of other hosts.")
