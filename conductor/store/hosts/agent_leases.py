"""Which worker carries the agents of a host: a lease for each unit, by the database's clock.

A worker's process has a tenure, by number. Its leases, the commands that it is sent, its reports
and the leases of its operations name worker and tenure. A process that starts again, or that lost
a lease, begins the next tenure; so nothing of a former one is mistaken for its successor's.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock
from common.messages.tenures import Claim, Granted, Unit, address, has_tenure, worker_of
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from db.schema import agent_leases, agents, hosts, services

_ROW = sa.select(agents).where(agents.c.worker == sa.bindparam("name")).with_for_update()
_UNIT = sa.select(agent_leases).where(agent_leases.c.unit == sa.bindparam("of")).with_for_update()
_BESIDE = sa.select(agent_leases).where(
    agent_leases.c.cluster == sa.bindparam("of"),
    agent_leases.c.unit != sa.bindparam("name"),
    agent_leases.c.expires_at >= sa.bindparam("now"),
)
_CURRENT = sa.select(agent_leases.c.unit).where(agent_leases.c.worker == sa.bindparam("who"))


def take(connection: sa.Connection, claim: Claim, seconds: float) -> tuple[Granted, bool]:
    """Take or renew a worker's leases; return what it has, and whether it has taken one over.

    What the former holder worked on is due then, and its hosts are the worker's.
    """
    registry.seen(
        connection,
        registry.AGENT,
        [claim.worker],
        worker=claim.worker,
        version=claim.version,
    )
    tenure = _tenure(connection, claim, seconds)
    if tenure is None:
        return Granted(0, seconds), False
    mine = address(claim.worker, tenure)
    held, holders, taken = [], {}, False
    for unit in sorted(claim.units, key=lambda one: one.name):
        row = connection.execute(_UNIT, {"of": unit.name}).first()
        # Its own process has ended, or has given up that tenure.
        own = row is not None and worker_of(row.worker) == claim.worker
        holder = row.worker if row is not None and not own and _lasts(row) else None
        holder = holder or _beside(connection, unit, claim.worker, renews=own and _lasts(row))
        if holder is not None:
            holders[unit.name] = worker_of(holder)
            continue
        held.append(unit.name)
        taken |= _hold(connection, unit, mine, row, seconds)
    return Granted(tenure, seconds, tuple(held), holders), taken


def _lasts(row: Any) -> bool:
    return bool(row.expires_at >= clock.utcnow())


def _beside(connection: sa.Connection, unit: Unit, worker: str, *, renews: bool) -> str | None:
    """Return another worker that carries some of the unit's hosts as another unit; None: nobody.

    Of two that were granted at the same moment the one whose name comes first is renewed: the
    whole cluster's before those of its parts.
    """
    values = {"of": unit.cluster, "name": unit.name, "now": clock.utcnow()}
    for row in connection.execute(_BESIDE, values):
        if worker_of(row.worker) == worker or (renews and unit.name < row.unit):
            continue
        if unit.overlaps(Unit(row.unit, row.cluster, tuple(row.nodes or ()))):
            return str(row.worker)
    return None


def _tenure(connection: sa.Connection, claim: Claim, seconds: float) -> int | None:
    """Return the tenure of the worker's process; None: another process of its name may be active.

    One of the same machine has ended: there, a name is held by one process at a time.
    """
    values: dict[str, Any] = {
        "process": claim.process,
        "machine": claim.machine,
        "expires_at": clock.after(seconds),
    }
    row = connection.execute(_ROW, {"name": claim.worker}).first()
    if row is None:
        values |= {"worker": claim.worker, "tenure": claim.tenure + 1}
        connection.execute(agents.insert().values(values))
        return int(values["tenure"])
    elsewhere = not claim.machine or row.machine != claim.machine
    if row.process != claim.process and elsewhere and row.expires_at >= clock.utcnow():
        return None
    goes_on = row.process == claim.process and row.tenure == claim.tenure
    # The database may have been put back: what the worker had is then the later one.
    tenure = row.tenure if goes_on else max(row.tenure, claim.tenure) + 1
    mine = agents.update().where(agents.c.worker == claim.worker)
    connection.execute(mine.values(**values, tenure=tenure))
    return int(tenure)


def _hold(connection: sa.Connection, unit: Unit, mine: str, row: Any, seconds: float) -> bool:
    """Write that a worker holds a unit; return whether another one did before."""
    values = {"worker": mine, "cluster": unit.cluster, "expires_at": clock.after(seconds)}
    # A unit's name follows from its nodes, which a worker of 1.0.0 doesn't name.
    values |= {"nodes": list(unit.nodes)} if unit.nodes else {}
    if row is None:
        connection.execute(agent_leases.insert().values(unit=unit.name, **values))
        return False
    one = agent_leases.c.unit == unit.name
    connection.execute(agent_leases.update().where(one).values(values))
    if row.worker == mine:
        return False
    _take_over(connection, row.worker, mine, unit.cluster)
    return True


def _take_over(connection: sa.Connection, former: str, mine: str, cluster: str) -> None:
    """Send the new holder what was sent to the former one, from now on."""
    its = (hosts.c.worker == former) & (hosts.c.cluster == cluster)
    names = sa.select(hosts.c.host).where(hosts.c.cluster == cluster)
    connection.execute(
        services.update()
        .where(
            services.c.binary == registry.COMPUTE,
            services.c.worker == former,
            services.c.host.in_(names),
        )
        .values(worker=mine)
    )
    connection.execute(hosts.update().where(its).values(worker=mine))
    leases.end_of_worker(connection, former)


def release(connection: sa.Connection, worker: str) -> None:
    """End a worker's leases: it has stopped in order."""
    now = clock.utcnow()
    mine = agent_leases.c.worker == worker
    connection.execute(agent_leases.update().where(mine).values(expires_at=now))
    connection.execute(
        agents.update().where(agents.c.worker == worker_of(worker)).values(expires_at=now)
    )


def is_current(connection: sa.Connection, worker: str) -> bool:
    """Return whether a worker, by its address, holds a lease in the tenure that it names."""
    if not has_tenure(worker):
        return True
    return connection.execute(_CURRENT, {"who": worker}).first() is not None
