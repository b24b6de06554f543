"""Deletes for good what was soft-deleted long enough ago."""

from __future__ import annotations

from common import clock
from common.context import internal
from common.errors import Conflict, NotFound
from common.log import logger
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.engine.runner import Runner
from conductor.servers.accept import Accept
from conductor.store.ledger import pulse
from conductor.store.servers import servers

LOG = logger(__name__)

#: between two looks
RECLAIM_SECONDS = 60.0
#: servers in one look
MOST = 100


class Reclaim:
    """A periodic task; several conductors may run it: each server is taken once."""

    def __init__(self, cloud: Cloud, runner: Runner) -> None:
        self._cloud, self._runner = cloud, runner
        self._accept = Accept(cloud)

    def look(self) -> None:
        """Begin the deletes that are due."""
        if self._cloud.guard.held is not None:
            return
        before = clock.after(-self._cloud.conf.conductor.reclaim_instance_interval)
        with self._cloud.store.read() as connection:
            awake = pulse.awake_since(connection)
            # One may have been restored since an older database was written: its users get all of
            # the time again.
            if awake is not None and awake > before:
                return
            due = servers.soft_deleted(connection, before, MOST)
        for uuid in due:
            ctxt = internal()
            ctxt.about(ResourceType.SERVER, uuid)
            try:
                operation = self._accept.reclaim(ctxt, uuid)
            except (Conflict, NotFound) as error:
                LOG.info("Server %s can't be reclaimed yet: %s", uuid, error.message)
                continue
            if operation is not None:
                LOG.info("Server %s was not restored in time: deleting it.", uuid)
                self._runner.submit(operation)
