"""Finds cached templates that nothing needs: their image is gone, and no server uses it."""

from __future__ import annotations

import datetime

from common import clock
from common.log import logger
from conductor.cloud import Cloud
from conductor.engine.removal import AGAIN_SECONDS
from conductor.images import remove_template
from conductor.plans import Place
from conductor.store.images import templates
from conductor.store.images.templates import IDLE, RETIRING, Known
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class TemplateKeeper:
    """Finds unneeded templates, and begins their removal."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def tidy(self) -> None:
        """Mark unneeded templates, and begin to remove those that were marked for long enough."""
        with self._cloud.store.read() as connection:
            idle, back = templates.unneeded(connection)
            made = templates.made_after_all(connection)
        if made:
            self._cloud.store.run(lambda c: _ready(c, made))
        if idle or back:
            began = self._cloud.store.run(self._mark)
            if began:
                self._cloud.wake()

    def _mark(self, connection: Transaction) -> bool:
        """Recheck in one transaction to catch concurrent builds; return whether one began."""
        idle, back = templates.unneeded(connection)
        for one in back:
            templates.mark(connection, one, None)
        began = False
        for one in idle:
            age = (clock.utcnow() - one.since) / datetime.timedelta(seconds=1)
            if one.reason != IDLE and not one.retiring:
                templates.mark(connection, one, IDLE)
            elif age >= (AGAIN_SECONDS if one.retiring else self._grace):
                began = self._begin(connection, one) or began
        return began

    @property
    def _grace(self) -> float:
        return float(self._cloud.conf.conductor.template_grace_seconds)

    def _begin(self, connection: Transaction, one: Known) -> bool:
        """Begin the removal, if an agent is up and none is in progress; return whether."""
        agent = remove_template.agent_of(connection, self._cloud, one.cluster, one.node)
        if agent is None:
            return False
        where = Place(agent[0], None, one.cluster, one.node, one.vmid)
        operation = remove_template.begin(connection, self._cloud, where, one.image_id)
        if operation is None:
            return False
        templates.mark(connection, one, RETIRING)
        LOG.info("Template %d of cluster %s is not needed any more.", one.vmid, one.cluster)
        return True


def _ready(connection: Transaction, made: list[Known]) -> None:
    for known in made:
        templates.ready(connection, known.cluster, known.vmid)
