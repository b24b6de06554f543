"""Removes cached templates that nobody needs: their image is gone, and no server was made of it.

An agent removes it, if it is provably this cloud's and nothing hangs on it; the VMID is free once
it was seen gone. What could not be removed is tried again later.
"""

from __future__ import annotations

import datetime

from common import clock
from common.context import internal
from common.log import logger
from common.messages.commands import Placed, RetireTemplate
from common.messages.reports import Failure, Report
from conductor.cloud import Cloud
from conductor.store import registry, templates, vm_states
from conductor.store.templates import IDLE, RETIRING, Known
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: until a removal that was not heard of is asked for again
AGAIN_SECONDS = 600.0
#: reports on templates belong to no operation
NO_OPERATION = 0


class TemplateKeeper:
    """Looks for templates that may go, and hears how it went."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def tidy(self) -> None:
        """Mark what is needed no more, and have removed what was marked for long enough."""
        with self._cloud.store.read() as connection:
            idle, back = templates.unneeded(connection)
            made = templates.made_after_all(connection)
        if made:
            self._cloud.store.run(lambda c: _ready(c, made))
        if idle or back:
            for one, host, worker in self._cloud.store.run(self._mark):
                self._send(one, host, worker)

    def _mark(self, connection: Transaction) -> list[tuple[Known, str, str]]:
        """Anew in one transaction: whoever chooses a template meanwhile is seen."""
        idle, back = templates.unneeded(connection)
        for one in back:
            templates.mark(connection, one, None)
        due = []
        for one in idle:
            age = (clock.utcnow() - one.since) / datetime.timedelta(seconds=1)
            if one.reason != IDLE and not one.retiring:
                templates.mark(connection, one, IDLE)
            elif age >= (AGAIN_SECONDS if one.retiring else self._grace):
                where = self._agent(connection, one)
                if where is not None:
                    templates.mark(connection, one, RETIRING)
                    due.append((one, *where))
        return due

    @property
    def _grace(self) -> float:
        return float(self._cloud.conf.conductor.template_grace_seconds)

    def _agent(self, connection: Transaction, one: Known) -> tuple[str, str] | None:
        """Host and worker of the template's node, or else of any in the cluster that is up."""
        for host, _ in vm_states.nearest(connection, one.cluster, one.node):
            worker = self._cloud.worker_of(connection, host)
            if worker is not None:
                return host, worker
        return None

    def _send(self, one: Known, host: str, worker: str) -> None:
        LOG.info("Template %d of cluster %s is needed no more.", one.vmid, one.cluster)
        self._cloud.compute.retire_template(
            internal(),
            worker,
            RetireTemplate(
                NO_OPERATION,
                0,
                f"{one.cluster}/{one.vmid}",
                Placed(host, one.cluster, one.node, one.vmid),
                clock.after(self._cloud.conf.conductor.action_timeout_seconds),
                image_id=one.image_id,
                cloud=self._cloud.id,
            ),
        )

    def told(self, report: Report) -> None:
        """How a removal went, or a making ahead. An agent may speak only of its own cluster."""
        cluster, _, number = report.server_uuid.rpartition("/")
        if report.outcome is None or not number.isdigit():
            return
        if not report.outcome.gone:
            self._not_gone(cluster, int(number), report.host, report.outcome.failure)
            return

        def work(connection: Transaction) -> bool:
            mine = report.host in registry.hosts_in(connection, cluster)
            return mine and templates.gone(connection, cluster, int(number))

        if self._cloud.store.run(work):
            LOG.info("Template %s of cluster %s is gone.", number, cluster)

    def _not_gone(self, cluster: str, vmid: int, host: str, failure: Failure | None) -> None:
        """It was made ahead; or that, or its removal, failed: the list of VMIDs says why."""

        def work(connection: Transaction) -> None:
            if host not in registry.hosts_in(connection, cluster):
                return
            if failure is None:
                templates.ready(connection, cluster, vmid)
            else:
                remedy = f" Remedy: {failure.remedy}." if failure.remedy else ""
                why = f"{failure.category} on {host}: {failure.message}{remedy}"
                templates.failed(connection, cluster, vmid, why)

        self._cloud.store.run(work)
        if failure is None:
            LOG.info("Template %s of cluster %s is ready.", vmid, cluster)
        else:
            LOG.warning("Template %s of cluster %s: %s", vmid, cluster, failure.message)


def _ready(connection: Transaction, made: list[Known]) -> None:
    for known in made:
        templates.ready(connection, known.cluster, known.vmid)
