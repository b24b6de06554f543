"""Host aggregates: the API's requests, and publishing aggregates and hosts' settings.

Schedulers and agents get them by fanout, at each change and at intervals, so that a lost message
does no lasting harm. Placement gets them after the transaction; an update that it has not taken
remains in the outbox and is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from common import context
from common.context import RequestContext
from common.errors import Conflict, GenerationConflict, MicronovaError, NotFound
from common.log import logger
from common.resources.aggregates import AggregateFacts, AllAggregates, ratios
from conductor.cloud import Cloud
from conductor.engine.periodic import Periodic, Periodics
from conductor.images.cache_ahead import Precache
from conductor.store import call_answers
from conductor.store.hosts import aggregates as store
from conductor.store.hosts import registry
from conductor.store.ledger import group_news
from conductor.store.outbox import notification_payloads, placement_outbox
from conductor.store.transactions import Transaction
from db.reads.hosts import aggregates as reads
from placement.messages import Memberships

LOG = logger(__name__)

#: the trait by which placement knows that a host is disabled, as Nova sets it
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
#: interval at which everything is published to schedulers again
PUBLISH_SECONDS = 60.0
#: interval at which updates that placement has not taken are sent again
RETRY_SECONDS = 10.0
#: the periodic task that updates placement
PLACEMENT = "tell_placement"
#: hosts that are sent to placement at a time
_AT_ONCE = 500


class AggregateEndpoint:
    """See ``conductor.rpc.AggregateRpc``."""

    def __init__(self, cloud: Cloud, notifier: Notifier) -> None:
        self._cloud = cloud
        self._notifier = notifier
        self._precache = Precache(cloud)

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int:
        def work(connection: Transaction) -> int:
            made = store.create(connection, name, zone)
            notification_payloads.aggregate(connection, ctxt, made, "create")
            call_answers.note(connection, made)
            return made

        number = self._cloud.store.run(work)
        self._notifier.spread(ctxt)
        return number

    def update_aggregate(
        self,
        ctxt: RequestContext,
        number: int,
        *,
        name: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> None:
        action = "update_metadata" if name is None else "update_prop"
        self._change(ctxt, number, action, lambda c: store.update(c, number, name, metadata or {}))

    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: Mapping[str, str | None]
    ) -> None:
        self._change(
            ctxt, number, "update_metadata", lambda c: store.set_metadata(c, number, metadata)
        )

    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None:
        def work(connection: Transaction) -> None:
            notification_payloads.aggregate(connection, ctxt, number, "delete")
            store.delete(connection, number)

        self._cloud.store.run(work)
        self._notifier.spread(ctxt)

    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        self._change(ctxt, number, "add_host", lambda c: store.add_host(c, number, host), host)

    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        remove = store.remove_host
        self._change(ctxt, number, "remove_host", lambda c: remove(c, number, host), host)

    def cache_images(self, ctxt: RequestContext, number: int, image_ids: Sequence[str]) -> None:
        self._precache.cache(ctxt, number, image_ids)

    def _change(
        self,
        ctxt: RequestContext,
        number: int,
        action: str,
        change: Callable[[Transaction], None],
        *moved: str,
    ) -> None:
        def work(connection: Transaction) -> None:
            change(connection)
            # They may be in another zone now.
            there = {*moved, *store.get(connection, number).hosts}
            group_news.note_zones(connection, there)
            notification_payloads.aggregate(connection, ctxt, number, action)

        self._cloud.store.run(work)
        self._notifier.spread(ctxt)


class Notifier:
    """Publishes aggregates and hosts' settings to schedulers, agents and placement."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._periodic = Periodics("notifier", cloud.store, cloud.name)
        self._periodic.add(Periodic("tell_aggregates", PUBLISH_SECONDS, self._publish_again))
        self._periodic.add(Periodic(PLACEMENT, PUBLISH_SECONDS, self._update_again))

    def start(self) -> None:
        """Publish now, and again at intervals."""
        self._periodic.start()

    def stop(self) -> None:
        """Publish no more."""
        self._periodic.stop(5)

    def spread(self, ctxt: RequestContext) -> None:
        """Publish a change: to schedulers at once, to placement in the background.

        The change remains committed even if neither can be reached.
        """
        try:
            self.publish(ctxt)
        except Exception:
            LOG.exception(
                "The aggregates could not be published to schedulers; trying again later."
            )
        self._periodic.wake(PLACEMENT)
        self._cloud.news.changed()

    def publish(self, ctxt: RequestContext) -> None:
        """Send all aggregates and hosts' settings to every scheduler, and ratios to every agent.

        A lost message is made up for by the next one.
        """
        with self._cloud.store.read() as connection:
            version = reads.version(connection)
            known = reads.list_aggregates(connection)
            settings = registry.host_settings(connection)
        facts = tuple(AggregateFacts(a.uuid, a.name, a.metadata, a.hosts) for a in known)
        everything = AllAggregates(
            version,
            facts,
            tuple(host for host, _, _ in settings),
            tuple(host for host, disabled, _ in settings if disabled),
            tuple(host for host, _, forced_down in settings if forced_down),
            self._cloud.id,
        )
        self._cloud.scheduler.update_aggregates(ctxt, everything)
        self._cloud.compute.update_ratios(ctxt, ratios(everything))

    def update_placement(self) -> bool:
        """Send placement all hosts in its outbox; return whether it has taken everything."""
        while True:
            with self._cloud.store.read() as connection:
                pending = placement_outbox.pending(connection, _AT_ONCE)
            if not self._send(pending):
                return False
            if len(pending) < _AT_ONCE:
                return True

    def _send(self, pending: Sequence[placement_outbox.Pending]) -> bool:
        """Send placement these hosts; return whether it has taken all of them.

        Those that are in placement as they are to be, as most new hosts, take no request.
        """
        if not pending:
            return True
        try:
            known = self._cloud.placement.memberships([one.provider_uuid for one in pending])
        except MicronovaError as error:
            LOG.warning("Placement can't be updated: %s", error.message)
            return False
        done = [one for one in pending if _is_as_wanted(one, (known or {}).get(one.provider_uuid))]
        if done:
            self._cloud.store.run(lambda c: placement_outbox.remove_all(c, done))
        complete = True
        for one in (one for one in pending if one not in done):
            try:
                if not self._update_provider(one):
                    complete = False
                    continue
            except MicronovaError as error:
                LOG.warning(
                    "Host %s could not be updated in placement: %s", one.host, error.message
                )
                return False
            self._cloud.store.run(
                lambda c, one=one: placement_outbox.remove(c, one)  # type: ignore[misc]
            )
        return complete

    def _update_provider(self, one: placement_outbox.Pending) -> bool:
        """Update a provider's aggregates and disabled trait; return False to have it repeated."""
        placement, uuid = self._cloud.placement, one.provider_uuid
        try:
            if one.disabled is None:
                placement.delete_provider(uuid)
                self._ask_back(one)
                return True
            placement.set_aggregates(uuid, one.uuids)
            change = placement.add_trait if one.disabled else placement.remove_trait
            change(uuid, DISABLED_TRAIT)
        except NotFound:
            # Its agent creates the provider; perhaps the provider's removal went unnoticed.
            self._ask_back(one)
            return not one.uuids and not one.disabled
        except GenerationConflict:
            raise
        except Conflict as error:
            LOG.warning("The provider of %s can't be deleted yet: %s", one.host, error.message)
            return False
        return True

    def _ask_back(self, one: placement_outbox.Pending) -> None:
        """Ask the agent of a host, whose provider has been removed, to create it again."""
        with self._cloud.store.read() as connection:
            worker = placement_outbox.worker_of(connection, one.provider_uuid, one.host)
        if worker is not None:
            self._cloud.compute.introduce(context.internal(), worker)

    def _publish_again(self) -> None:
        self.publish(context.internal())

    def _update_again(self) -> float:
        complete = False
        try:
            complete = self.update_placement()
        except Exception:
            LOG.exception("The aggregates could not be sent to placement; trying again later.")
        return PUBLISH_SECONDS if complete else RETRY_SECONDS


def _is_as_wanted(one: placement_outbox.Pending, there: Memberships | None) -> bool:
    """Return whether placement has a host's aggregates and trait as they are to be."""
    return (
        there is not None
        and one.disabled is not None
        and there.aggregates == frozenset(one.uuids)
        and (DISABLED_TRAIT in there.traits) == one.disabled
    )
