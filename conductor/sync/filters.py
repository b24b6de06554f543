"""Carries out the filter outbox: makes the firewalls of VMs what their ports' groups say."""

from __future__ import annotations

from common import context
from common.errors import Conflict, MicronovaError, ServerNotFound
from common.log import logger
from common.messages.questions import ConvergeFilter
from conductor.cloud import Cloud, backoff
from conductor.engine import guests
from conductor.engine.periodic import only_one
from conductor.store.networks.filtering import filters
from conductor.store.outbox import filter_outbox
from conductor.store.outbox.filter_outbox import Pending
from conductor.store.servers import servers

LOG = logger(__name__)

#: the periodic task, and its lease: one conductor at a time, so that older rules never come last
NAME = "filters"
#: a change wakes the task of its own conductor; the interval is for changes of the others
SECONDS = 2.0
#: interval where new ports are no longer filtered: earlier ports must still follow their groups
IDLE_SECONDS = 60.0
#: a build writes the firewall itself; what has changed since is written after it
BUSY_SECONDS = 2.0
_AT_ONCE = 50


class Filters:
    """Writes what the outbox says."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def look(self) -> float:
        """Carry out what is due; return the seconds until the next look."""
        with self._cloud.store.read() as connection:
            period = SECONDS if self._cloud.filtering.on(connection) else IDLE_SECONDS
            if not filter_outbox.pending(connection, 1):
                return period
        with only_one(self._cloud.store, NAME, self._cloud.name) as ours:
            if ours:
                self.carry_out()
        return period

    def carry_out(self) -> None:
        """Carry out all entries that are due, each once."""
        while True:
            with self._cloud.store.read() as connection:
                due = filter_outbox.pending(connection, _AT_ONCE)
            for one in due:
                self._converge(one)
            if len(due) < _AT_ONCE:
                return

    def _converge(self, one: Pending) -> None:
        try:
            ready = not one.alive or self._write(one)
        except ServerNotFound:
            # It is deleted since the entry was read.
            ready = True
        except MicronovaError as error:
            seconds = backoff(one.failures + 1)
            LOG.warning(
                "The firewall of server %s was not updated to its security groups: %s Trying "
                "again in %d s.",
                *(one.server_uuid, error.message, seconds),
            )
            self._later(one, seconds, failed=True)
            return
        if ready:
            self._cloud.store.run(lambda c: filter_outbox.remove(c, one))
        else:
            self._later(one, BUSY_SECONDS, failed=False)

    def _later(self, one: Pending, seconds: float, *, failed: bool) -> None:
        self._cloud.store.run(lambda c: filter_outbox.postpone(c, one, seconds, failed=failed))

    def _write(self, one: Pending) -> bool:
        """Return whether it is written, or there is nothing to write it to."""
        with self._cloud.store.read() as connection:
            server = servers.alive(connection, one.server_uuid, None, lock=False)
            try:
                where = guests.target(self._cloud, connection, server)
            except Conflict:
                # It has no VM: the next build of one writes it.
                return not one.building
            wanted = filters.wanted(connection, one.server_uuid)
        if one.building:
            return False
        done = self._cloud.compute.ask(context.internal(), where, ConvergeFilter(where, wanted))
        if done.writes:
            LOG.info(
                "The firewall of server %s was updated to its security groups; requests: %d.",
                one.server_uuid,
                done.writes,
            )
        for rule in done.unsaid:
            LOG.warning("Proxmox VE can't express rule %s: the rule allows nothing.", rule)
        return True
